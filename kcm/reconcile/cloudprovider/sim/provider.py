"""The simulated cloud as a provider.

Each simulated node has an instance, which is running, of the type `sim.standard` and in the node's
zone unless a record in Redis says otherwise. The cloud knows nothing about other nodes, such as
that of a kubelet on this machine: it reports that their instances exist and run, so they are
neither deleted nor tainted. A load balancer has an address from a pool, at which nothing listens.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kcm.api.core_v1 import LoadBalancerIngress, LoadBalancerStatus, Node, Service
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.clock import Clock
from kcm.reconcile.cloudprovider.discovery import ProviderSettings
from kcm.reconcile.cloudprovider.interface import (
    CloudError,
    InstanceMetadata,
    InstanceNotFound,
    Route,
    default_load_balancer_name,
)
from kcm.reconcile.cloudprovider.sim.records import Balancer, MadeCall, StoredRoute
from kcm.reconcile.cloudprovider.sim.state import SimState

NAME = "sim"
SCHEME = f"{NAME}://"  # followed by the node's name
DEFAULT_TYPE = "sim.standard"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
CALLS = (
    *("GetLoadBalancer", "EnsureLoadBalancer", "UpdateLoadBalancer", "EnsureLoadBalancerDeleted"),
    *("InstanceExists", "InstanceShutdown", "InstanceMetadata"),
    *("ListRoutes", "CreateRoute", "DeleteRoute"),
)


class SimCloud:
    """The simulated cloud. It has load balancers, instances and routes."""

    zones = None  # InstanceMetadata has the zones

    def __init__(self, state: SimState, clock: Clock) -> None:
        self.state = state
        self._clock = clock
        self._never = threading.Event()

    @property
    def name(self) -> str:
        return NAME

    @property
    def load_balancers(self) -> SimCloud:
        return self

    @property
    def instances_v2(self) -> SimCloud:
        return self

    @property
    def routes(self) -> SimCloud:
        return self

    @contextmanager
    def _call(self, call: str, about: str = "") -> Iterator[None]:
        """Does what a script says about the call, and records the call when it ends."""
        assert call in CALLS
        begun, at = self._clock.monotonic(), self._clock.now()
        failure = ""
        try:
            script = self.state.take_script(call, about)
            if script is not None and script.delay:
                self._clock.wait(self._never, script.delay)
            if script is not None and script.error:
                raise CloudError(script.error)
            yield
        except CloudError as error:
            failure = error.message
            raise
        finally:
            seconds = round(self._clock.monotonic() - begun, 3)
            self.state.record_call(
                MadeCall(at=at, call=call, object=about, seconds=seconds, error=failure)
            )

    # --- load balancers

    def get_load_balancer(self, cluster: str, service: Service) -> LoadBalancerStatus | None:
        with self._call("GetLoadBalancer", service.key):
            balancer = self.state.balancer(self.get_load_balancer_name(cluster, service))
            return _status_of(balancer) if balancer is not None else None

    def get_load_balancer_name(self, cluster: str, service: Service) -> str:
        return default_load_balancer_name(service)

    def ensure_load_balancer(
        self, cluster: str, service: Service, nodes: Sequence[Node]
    ) -> LoadBalancerStatus:
        with self._call("EnsureLoadBalancer", service.key):
            name = self.get_load_balancer_name(cluster, service)
            spec = service.spec
            balancer = Balancer(
                name=name,
                service=service.key,
                cluster=cluster,
                ip=self.state.allocate_address(name, spec.load_balancer_ip or ""),
                ports=tuple(f"{port.port}/{port.protocol or 'TCP'}" for port in spec.ports or ()),
                source_ranges=tuple(spec.load_balancer_source_ranges or ()),
                nodes=tuple(sorted(node.name for node in nodes)),
            )
            self.state.put_balancer(balancer)
            return _status_of(balancer)

    def update_load_balancer(self, cluster: str, service: Service, nodes: Sequence[Node]) -> None:
        with self._call("UpdateLoadBalancer", service.key):
            name = self.get_load_balancer_name(cluster, service)
            balancer = self.state.balancer(name)
            if balancer is None:
                raise CloudError(f"there is no load balancer {name}")
            names = tuple(sorted(node.name for node in nodes))
            self.state.put_balancer(balancer.model_copy(update={"nodes": names}))

    def ensure_load_balancer_deleted(self, cluster: str, service: Service) -> None:
        with self._call("EnsureLoadBalancerDeleted", service.key):
            self.state.remove_balancer(self.get_load_balancer_name(cluster, service))

    # --- instances

    def instance_exists(self, node: Node) -> bool:
        with self._call("InstanceExists", node.name):
            return not is_simulated(node) or self.state.instance(node.name).state != "deleted"

    def instance_shutdown(self, node: Node) -> bool:
        with self._call("InstanceShutdown", node.name):
            return is_simulated(node) and self.state.instance(node.name).state == "shutdown"

    def instance_metadata(self, node: Node) -> InstanceMetadata:
        with self._call("InstanceMetadata", node.name):
            instance = self.state.instance(node.name)
            if not is_simulated(node) or instance.state == "deleted":
                raise InstanceNotFound
            return InstanceMetadata(
                provider_id=f"{SCHEME}{node.name}",
                instance_type=instance.type or DEFAULT_TYPE,
                node_addresses=tuple(node.status.addresses or ()),
                zone=instance.zone or node.labels.get(ZONE_LABEL, ""),
                region=instance.region or node.labels.get(REGION_LABEL, ""),
            )

    # --- routes

    def list_routes(self, cluster: str) -> Sequence[Route]:
        with self._call("ListRoutes"):
            return [
                Route(route.name, route.node, route.cidr, blackhole=route.blackhole)
                for route in self.state.routes().values()
                if route.cluster == cluster
            ]

    def create_route(self, cluster: str, name_hint: str, route: Route) -> None:
        with self._call("CreateRoute", route.target_node):
            cidr = route.destination_cidr
            name = f"{cluster}-{name_hint}-{cidr.replace('/', '-')}"
            self.state.put_route(
                StoredRoute(name=name, cluster=cluster, node=route.target_node, cidr=cidr)
            )

    def delete_route(self, cluster: str, route: Route) -> None:
        with self._call("DeleteRoute", route.target_node):
            self.state.remove_route(route.name)


def is_simulated(node: Node) -> bool:
    """Reports whether the node has an instance in this cloud."""
    provider_id = node.spec.provider_id or ""
    if provider_id:
        return provider_id.startswith(SCHEME)
    return SIMULATOR_LABEL in node.labels


def _status_of(balancer: Balancer) -> LoadBalancerStatus:
    return LoadBalancerStatus(ingress=[LoadBalancerIngress(ip=balancer.ip, ip_mode="VIP")])


def create(settings: ProviderSettings) -> SimCloud:
    """Returns the simulated cloud of the connection."""
    return SimCloud(SimState(settings.io), settings.clock)
