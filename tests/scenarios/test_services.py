"""A service follows its pods, or what somebody writes by hand, in real workers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kcm.api import scheme
from kcm.api.core_v1 import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    PodCondition,
)
from kcm.api.meta_v1 import ObjectMeta
from tests.builders import service
from tests.chaos.cluster import PODS, Cluster
from tests.unstored import replica_set, unstored
from tests.waiting import until

pytestmark = pytest.mark.scenario
SLICES, ENDPOINTS = scheme.lookup("endpointslices"), scheme.lookup("endpoints")


def test_a_service_follows_its_pods_or_what_is_written_by_hand() -> None:
    cluster = Cluster(workers=1)
    try:
        cluster.start()
        cluster.store.create(unstored(service("web")))
        cluster.store.create(replica_set("web", replicas=3))
        until(lambda: cluster.store.count(PODS) == 3, "3 pods")
        run_all(cluster)
        until(lambda: ready(cluster) == 3, "3 endpoints")
        victim = next(iter(cluster.store.list(PODS).items))
        cluster.store.delete(PODS, victim.key)
        until(lambda: ready(cluster) == 2, "one endpoint less")
        cluster.store.delete(scheme.lookup("services"), "default/web")
        until(lambda: not mine(cluster), "the end of slices and endpoints")
        cluster.store.create(unstored(service("web", selector={})))
        cluster.store.create(by_hand("192.0.2.1", "2001:db8::1"))
        until(lambda: ready(cluster) == 2, "two mirrored endpoints")
        cluster.store.delete(ENDPOINTS, "default/web")
        until(lambda: not mine(cluster), "the end of the mirrored slices")
    finally:
        cluster.stop()


def by_hand(*ips: str) -> Endpoints:
    subset = EndpointSubset(
        addresses=[EndpointAddress(ip=ip) for ip in ips], ports=[EndpointPort(port=80)]
    )
    return Endpoints(metadata=ObjectMeta(name="web", namespace="default"), subsets=[subset])


def run_all(cluster: Cluster) -> None:
    """As kubelets do."""
    now = datetime.now(UTC).replace(microsecond=0)
    ready = PodCondition(type="Ready", status="True", last_transition_time=now)
    for number, pod in enumerate(cluster.store.list(PODS).items):
        status = pod.status.replace(  # type: ignore[attr-defined] # a pod
            phase="Running", pod_ip=f"10.0.0.{number + 1}", conditions=[ready]
        )
        cluster.store.update_status(pod.with_status(status))


def ready(cluster: Cluster) -> int:
    found = cluster.store.list(SLICES, "default").items
    return sum(e.conditions.ready is True for s in found for e in s.endpoints)  # type: ignore[attr-defined] # slices


def mine(cluster: Cluster) -> list[str]:
    return [
        obj.key
        for kind in (SLICES, ENDPOINTS)
        for obj in cluster.store.list(kind, "default").items
        if obj.name.startswith("web")
    ]
