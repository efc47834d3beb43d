"""A quota holds in real workers: what a ReplicaSet may not have it is told, and gets later."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Event, ResourceQuota, ResourceQuotaSpec
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from tests.chaos.world import PODS, SETS
from tests.new_objects import replica_set
from tests.scenarios.plane import Plane, StartPlane, start_plane

__all__ = ["start_plane"]

pytestmark = pytest.mark.scenario
QUOTAS, EVENTS = ResourceQuota.resource, Event.resource


def test_a_replicaset_gets_as_many_pods_as_there_is_room_for(start_plane: StartPlane) -> None:
    plane = start_plane(nodes=0)
    plane.store.create(replica_set("before", replicas=2))
    plane.until(lambda: plane.store.count(PODS) == 2, "2 pods")
    plane.store.create(quota(pods=12))
    plane.until(lambda: get_used(plane) == "2", "a first count")
    plane.store.create(replica_set("web", replicas=500))
    plane.until(lambda: plane.store.count(PODS) == 12, "10 more pods")
    plane.until(lambda: "exceeded quota: few, requested: pods=1, used: pods=12, limited: pods=12"
          in " ".join(refusals(plane)), "the refusals' events")  # fmt: skip
    assert get_used(plane) == "12"
    plane.store.delete(SETS, "default/before")
    plane.until(lambda: pods_of(plane, "web") == 12, "the room that became free")
    assert (plane.store.count(PODS), get_used(plane)) == (12, "12")


def quota(**hard: int) -> ResourceQuota:
    amounts = {name: Quantity(amount) for name, amount in hard.items()}
    meta = ObjectMeta(name="few", namespace="default")
    return ResourceQuota(metadata=meta, spec=ResourceQuotaSpec(hard=amounts))


def get_used(plane: Plane) -> str:
    obj = plane.store.get(QUOTAS, "default/few")
    assert isinstance(obj, ResourceQuota)
    return str((obj.status.used or {}).get("pods"))


def pods_of(plane: Plane, owner: str) -> int:
    return sum(pod.name.startswith(owner) for pod in plane.store.list(PODS).items)


def refusals(plane: Plane) -> list[str]:
    events = [event for event in plane.store.list(EVENTS).items if isinstance(event, Event)]
    return [event.message or "" for event in events if event.reason == "FailedCreate"]
