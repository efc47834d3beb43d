"""Calls to a cloud, as data. A plan has them as a step, and their answers are in its outcome.

Each is carried out by `make`, which does the I/O and raises what the provider raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from kcm.api.core_v1 import LoadBalancerStatus, Node, Service
from kcm.reconcile.cloudprovider.interface import (
    CloudProvider,
    InstanceMetadata,
    InstanceNotFound,
    InstancesV2,
    LoadBalancers,
    NotSupported,
    Route,
    Routes,
    Zone,
)

T = TypeVar("T")


class CloudCall(Protocol):
    """One call to a cloud."""

    def make(self, cloud: CloudProvider, cluster: str) -> Any:
        """Makes the call and returns its result. Raises what the provider raises.

        `cluster` is the value of --cluster-name.
        """
        ...


@dataclass(frozen=True)
class Answer:
    """The result of a call, or the error that it raised."""

    call: CloudCall
    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True)
class GetLoadBalancer:
    """Asks for the status of a Service's load balancer, None if it has none."""

    service: Service

    def make(self, cloud: CloudProvider, cluster: str) -> LoadBalancerStatus | None:
        return _load_balancers(cloud).get_load_balancer(cluster, self.service)


@dataclass(frozen=True)
class EnsureLoadBalancer:
    """Creates or updates a Service's load balancer, and answers with its status."""

    service: Service
    nodes: tuple[Node, ...]

    def make(self, cloud: CloudProvider, cluster: str) -> LoadBalancerStatus:
        return _load_balancers(cloud).ensure_load_balancer(cluster, self.service, self.nodes)


@dataclass(frozen=True)
class UpdateLoadBalancer:
    """Gives a Service's load balancer other nodes."""

    service: Service
    nodes: tuple[Node, ...]

    def make(self, cloud: CloudProvider, cluster: str) -> None:
        _load_balancers(cloud).update_load_balancer(cluster, self.service, self.nodes)


@dataclass(frozen=True)
class DeleteLoadBalancer:
    """Deletes a Service's load balancer, if it has one."""

    service: Service

    def make(self, cloud: CloudProvider, cluster: str) -> None:
        _load_balancers(cloud).ensure_load_balancer_deleted(cluster, self.service)


@dataclass(frozen=True)
class InstanceExists:
    """Asks whether the instance behind a node exists."""

    node: Node

    def make(self, cloud: CloudProvider, cluster: str) -> bool:
        return _instances(cloud).instance_exists(self.node)


@dataclass(frozen=True)
class InstanceShutdown:
    """Asks whether the instance behind a node is shut down."""

    node: Node

    def make(self, cloud: CloudProvider, cluster: str) -> bool:
        return _instances(cloud).instance_shutdown(self.node)


@dataclass(frozen=True)
class GetInstanceMetadata:
    """Asks for what the cloud knows about the instance behind a node."""

    node: Node

    def make(self, cloud: CloudProvider, cluster: str) -> InstanceMetadata:
        metadata = _instances(cloud).instance_metadata(self.node)
        if metadata.zone and metadata.region:
            return metadata
        zone = self._zone(cloud, metadata.provider_id or self.node.spec.provider_id or "")
        return replace(
            metadata,
            zone=metadata.zone or zone.failure_domain,
            region=metadata.region or zone.region,
        )

    def _zone(self, cloud: CloudProvider, provider_id: str) -> Zone:
        zones = cloud.zones
        if zones is None:
            return Zone()
        if provider_id:
            try:
                return zones.get_zone_by_provider_id(provider_id)
            except InstanceNotFound:
                pass
        return zones.get_zone_by_node_name(self.node.name)


@dataclass(frozen=True)
class ListRoutes:
    """Asks for all routes of the cluster."""

    def make(self, cloud: CloudProvider, cluster: str) -> Sequence[Route]:
        return _routes(cloud).list_routes(cluster)


@dataclass(frozen=True)
class CreateRoute:
    """Creates a route. The cloud may use `name_hint` for its name."""

    name_hint: str
    route: Route

    def make(self, cloud: CloudProvider, cluster: str) -> None:
        _routes(cloud).create_route(cluster, self.name_hint, self.route)


@dataclass(frozen=True)
class DeleteRoute:
    """Deletes a route."""

    route: Route

    def make(self, cloud: CloudProvider, cluster: str) -> None:
        _routes(cloud).delete_route(cluster, self.route)


def _load_balancers(cloud: CloudProvider) -> LoadBalancers:
    return _required(cloud.load_balancers, cloud, "external load balancers")


def _instances(cloud: CloudProvider) -> InstancesV2:
    return _required(cloud.instances_v2, cloud, "instances")


def _routes(cloud: CloudProvider) -> Routes:
    return _required(cloud.routes, cloud, "routes")


def _required(interface: T | None, cloud: CloudProvider, what: str) -> T:
    if interface is None:
        raise NotSupported(f"the cloud provider {cloud.name} does not support {what}")
    return interface
