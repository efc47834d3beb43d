"""A service follows its pods, or what somebody writes by hand, in real workers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kcm.api.core_v1 import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Pod,
    PodCondition,
)
from kcm.api.discovery_v1 import EndpointSlice
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.testing.builders import service
from kcm.testing.waiting import until
from tests.chaos.world import PODS
from tests.new_objects import replica_set, strip_store_fields
from tests.scenarios.plane import Plane, StartPlane, start_plane
from tests.scenarios.system import System, system
from tests.typed_objects import list_objects

pytestmark = pytest.mark.scenario
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: all}
spec: {selector: {app: all}, ports: [{port: 80}]}
"""
ON_EVERY_NODE = """\
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: all, set: {name}}}}}
  template:
    metadata: {{labels: {{app: all, set: {name}}}}}
    spec:
      hostNetwork: {host_network}
      tolerations: [{{operator: Exists}}]
      terminationGracePeriodSeconds: 1
      containers: [{{name: main, image: none, command: [sleep, "1000"]}}]
"""
EVERYWHERE = "".join(
    (
        SERVICE,
        ON_EVERY_NODE.format(name="own", host_network="false"),
        ON_EVERY_NODE.format(name="host", host_network="true"),
    )
)
__all__ = ["start_plane", "system"]

SLICES, ENDPOINTS = BUILT_IN.lookup("endpointslices"), BUILT_IN.lookup("endpoints")


def test_a_service_follows_its_pods_or_what_is_written_by_hand(start_plane: StartPlane) -> None:
    plane = start_plane(nodes=0)
    plane.store.create(strip_store_fields(service("web")))
    plane.store.create(replica_set("web", replicas=3))
    plane.until(lambda: plane.store.count(PODS) == 3, "3 pods")
    run_all(plane)
    plane.until(lambda: ready(plane) == 3, "3 endpoints")
    victim = next(iter(plane.store.list(PODS).items))
    plane.store.delete(PODS, victim.key)
    plane.until(lambda: ready(plane) == 2, "one endpoint less")
    plane.store.delete(BUILT_IN.lookup("services"), "default/web")
    plane.until(lambda: not list_own_keys(plane), "the end of slices and endpoints")
    plane.store.create(strip_store_fields(service("web", selector={})))
    plane.store.create(by_hand("192.0.2.1", "2001:db8::1"))
    plane.until(lambda: ready(plane) == 2, "two mirrored endpoints")
    plane.store.delete(ENDPOINTS, "default/web")
    plane.until(lambda: not list_own_keys(plane), "the end of the mirrored slices")


def by_hand(*ips: str) -> Endpoints:
    subset = EndpointSubset(
        addresses=[EndpointAddress(ip=ip) for ip in ips], ports=[EndpointPort(port=80)]
    )
    return Endpoints(metadata=ObjectMeta(name="web", namespace="default"), subsets=[subset])


def run_all(plane: Plane) -> None:
    """As kubelets do."""
    now = datetime.now(UTC).replace(microsecond=0)
    ready = PodCondition(type="Ready", status="True", last_transition_time=now)
    for number, pod in enumerate(list_objects(plane.store, Pod)):
        status = pod.status.replace(
            phase="Running", pod_ip=f"10.0.0.{number + 1}", conditions=[ready]
        )
        plane.store.update_status(pod.with_status(status))


def ready(plane: Plane) -> int:
    endpoints = [e for s in list_objects(plane.store, EndpointSlice) for e in s.endpoints]
    return sum(e.conditions is not None and e.conditions.ready is True for e in endpoints)


def list_own_keys(plane: Plane) -> list[str]:
    return [
        obj.key
        for kind in (SLICES, ENDPOINTS)
        for obj in plane.store.list(kind, "default").items
        if obj.name.startswith("web")
    ]


def test_a_service_has_endpoints_on_real_and_on_simulated_nodes(system: System) -> None:
    system.start("--kubelet", "--nodes=2")
    system.apply(EVERYWHERE)

    def addresses() -> list[str]:
        return sorted(
            address
            for endpointslice in system.items("endpointslices")
            for endpoint in endpointslice["endpoints"]
            if endpoint["conditions"]["ready"]
            for address in endpoint["addresses"]
        )

    until(lambda: len(addresses()) == 6, "an endpoint for each pod")
    pods = system.items("pods", app="all")
    assert addresses() == sorted(pod["status"]["podIP"] for pod in pods)

    def legacy_addresses() -> list[str]:
        (endpoints,) = [e for e in system.items("endpoints") if e["metadata"]["name"] == "all"]
        subsets = endpoints.get("subsets") or []
        return sorted(one["ip"] for subset in subsets for one in subset.get("addresses") or [])

    until(lambda: legacy_addresses() == addresses(), "the Endpoints object follows its slices")
