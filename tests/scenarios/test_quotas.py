"""A quota holds in real workers: what a ReplicaSet may not have it is told, and gets later."""

from __future__ import annotations

import pytest

from kcm.api import scheme
from kcm.api.core_v1 import Event, ResourceQuota, ResourceQuotaSpec
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.testing.waiting import until
from tests.chaos.cluster import PODS, SETS, Cluster
from tests.new_objects import replica_set

pytestmark = pytest.mark.scenario
QUOTAS, EVENTS = scheme.resource_of(ResourceQuota), scheme.resource_of(Event)


@pytest.mark.long
def test_a_replicaset_gets_as_many_pods_as_there_is_room_for() -> None:
    cluster = Cluster(workers=2)
    try:
        cluster.start()
        cluster.store.create(replica_set("before", replicas=2))
        until(lambda: cluster.store.count(PODS) == 2, "2 pods")
        cluster.store.create(quota(pods=12))
        until(lambda: get_used(cluster) == "2", "a first count")
        cluster.store.create(replica_set("web", replicas=500))
        until(lambda: cluster.store.count(PODS) == 12, "10 more pods")
        until(lambda: "exceeded quota: few, requested: pods=1, used: pods=12, limited: pods=12"
              in " ".join(refusals(cluster)), "the refusals' events")  # fmt: skip
        assert get_used(cluster) == "12"
        cluster.store.delete(SETS, "default/before")
        until(lambda: pods_of(cluster, "web") == 12, "the room that became free")
        assert (cluster.store.count(PODS), get_used(cluster)) == (12, "12")
    finally:
        cluster.stop()


def quota(**hard: int) -> ResourceQuota:
    amounts = {name: Quantity(amount) for name, amount in hard.items()}
    meta = ObjectMeta(name="few", namespace="default")
    return ResourceQuota(metadata=meta, spec=ResourceQuotaSpec(hard=amounts))


def get_used(cluster: Cluster) -> str:
    obj = cluster.store.get(QUOTAS, "default/few")
    assert isinstance(obj, ResourceQuota)
    return str((obj.status.used or {}).get("pods"))


def pods_of(cluster: Cluster, owner: str) -> int:
    return sum(pod.name.startswith(owner) for pod in cluster.store.list(PODS).items)


def refusals(cluster: Cluster) -> list[str]:
    events = [event for event in cluster.store.list(EVENTS).items if isinstance(event, Event)]
    return [event.message or "" for event in events if event.reason == "FailedCreate"]
