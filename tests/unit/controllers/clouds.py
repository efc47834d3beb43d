"""A cloud in memory, after upstream's fake cloud, for tests of the controllers that call one.

Source: staging/src/k8s.io/cloud-provider/fake/fake.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kcm.api.core_v1 import LoadBalancerIngress, LoadBalancerStatus, Node, Service
from kcm.reconcile.carrying import CarriedPlan
from kcm.reconcile.cloudprovider.caller import CloudCaller
from kcm.reconcile.cloudprovider.interface import InstanceMetadata, InstanceNotFound, Route, Zone
from kcm.reconcile.contract import Controller
from kcm.testing.views import FakeView
from kcm.testing.world import World


@dataclass
class MemoryCloud:
    """Records the calls, and answers from its fields. `failures` has an error by call."""

    name: str = "memory"
    zones: None = None
    balancers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # node names by Service
    instances: dict[str, InstanceMetadata] = field(default_factory=dict)
    shut_down: set[str] = field(default_factory=set)
    stored_routes: list[Route] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def load_balancers(self) -> MemoryCloud:
        return self

    @property
    def instances_v2(self) -> MemoryCloud:
        return self

    @property
    def routes(self) -> MemoryCloud:
        return self

    def _called(self, call: str, about: str) -> None:
        self.calls.append((call, about))
        if call in self.failures:
            raise self.failures[call]

    def get_load_balancer_name(self, cluster: str, service: Service) -> str:
        return service.uid

    def get_load_balancer(self, cluster: str, service: Service) -> LoadBalancerStatus | None:
        self._called("get", service.key)
        return LoadBalancerStatus() if service.uid in self.balancers else None

    def ensure_load_balancer(
        self, cluster: str, service: Service, nodes: Sequence[Node]
    ) -> LoadBalancerStatus:
        self._called("ensure", service.key)
        self.balancers[service.uid] = tuple(node.name for node in nodes)
        return LoadBalancerStatus(ingress=[LoadBalancerIngress(ip="1.2.3.4", ip_mode="VIP")])

    def update_load_balancer(self, cluster: str, service: Service, nodes: Sequence[Node]) -> None:
        self._called("update", service.key)
        self.balancers[service.uid] = tuple(node.name for node in nodes)

    def ensure_load_balancer_deleted(self, cluster: str, service: Service) -> None:
        self._called("delete", service.key)
        self.balancers.pop(service.uid, None)

    def instance_exists(self, node: Node) -> bool:
        self._called("exists", node.name)
        return node.name in self.instances

    def instance_shutdown(self, node: Node) -> bool:
        self._called("shutdown", node.name)
        return node.name in self.shut_down

    def instance_metadata(self, node: Node) -> InstanceMetadata:
        self._called("metadata", node.name)
        if node.name not in self.instances:
            raise InstanceNotFound
        return self.instances[node.name]

    def get_zone(self) -> Zone:
        return Zone()

    def list_routes(self, cluster: str) -> Sequence[Route]:
        self._called("list", cluster)
        return list(self.stored_routes)

    def create_route(self, cluster: str, name_hint: str, route: Route) -> None:
        self._called("create", f"{route.target_node} {route.destination_cidr}")
        name = f"{name_hint}-{route.destination_cidr}"
        self.stored_routes.append(replace(route, name=name))

    def delete_route(self, cluster: str, route: Route) -> None:
        self._called("remove", f"{route.target_node} {route.destination_cidr}")
        self.stored_routes.remove(route)


class CloudWorld(World):
    """A world whose plans call a cloud in memory, and that keeps memory, Events and errors."""

    def __init__(self, controller: Controller, *objects: Any) -> None:
        super().__init__(*objects)
        self.controller = controller
        self.memory_cloud = MemoryCloud()
        self.cloud = CloudCaller(self.memory_cloud, "kubernetes")
        self.memory: dict[str, dict[str, str]] = {}
        self.error: Exception | None = None
        self.requeue_after: float | None = None

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]

    def take_calls(self) -> list[str]:
        """Returns the names of the calls since the last time."""
        taken = [call for call, _ in self.memory_cloud.calls]
        self.memory_cloud.calls.clear()
        return taken

    def sync(self, key: str) -> None:
        """Syncs a key until its plans end, as the runner does."""
        self.error, self.requeue_after = None, None
        view = FakeView(
            *self.objects.values(),
            now=self.now,
            controller=self.controller,
            memory=self.memory.get(key),
        )

        def remember(carried: CarriedPlan) -> None:
            if carried.plan.state is not None:
                self.memory[key] = dict(carried.plan.state)

        carried = self.finish(self.controller.reconcile(key, view), remember)
        self.error, self.requeue_after = carried.plan.error, carried.plan.requeue_after
