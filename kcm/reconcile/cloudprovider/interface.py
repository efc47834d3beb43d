"""The interface of cloud providers: instances, zones, routes and load balancers.

A provider may do I/O, be slow and fail. Its methods are called in threads, several at a time, and
by several processes at a time, so what it keeps between calls must be outside of the process. A
method that can hang has to end by itself, sooner than the cloud controllers may keep a key.

Source: staging/src/k8s.io/cloud-provider/cloud.go and api/retry_error.go, Kubernetes 1.33.
Departures: Instances (v1) and Clusters are left out, since InstancesV2 has replaced the one and no
controller uses the other. Zones are asked for what InstancesV2 leaves empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kcm import errors
from kcm.api.core_v1 import LoadBalancerStatus, Node, NodeAddress, Service


class CloudError(errors.KcmError):
    """A call to the cloud failed."""


class InstanceNotFound(CloudError):
    """instance not found"""

    # The text of the docstring is upstream's error.


class ImplementedElsewhere(CloudError):
    """implemented by alternate to cloud provider"""


class NotSupported(CloudError):
    """The cloud provider does not have this interface."""


class RetryAfter(CloudError):
    """The call has not succeeded yet, and is to be repeated after a fixed time.

    `seconds` is that time.
    """

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True)
class InstanceMetadata:
    """What a cloud knows about an instance. Empty fields are unknown."""

    provider_id: str = ""  # `<provider>://<id>`, for spec.providerID of the node
    instance_type: str = ""
    node_addresses: tuple[NodeAddress, ...] = ()
    zone: str = ""
    region: str = ""
    additional_labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Zone:
    """The failure domain and the region of an instance."""

    failure_domain: str = ""
    region: str = ""


@dataclass(frozen=True)
class Route:
    """A routing rule: packets to `destination_cidr` go to the node `target_node`."""

    name: str = ""  # chosen by the cloud; ignored by `create_route`
    target_node: str = ""
    destination_cidr: str = ""
    target_node_addresses: tuple[NodeAddress, ...] = ()
    # whether the cloud keeps `target_node_addresses`, so that a change of them replaces the route
    enable_node_addresses: bool = False
    blackhole: bool = False  # whether the packets go nowhere, since the target is gone


class LoadBalancers(Protocol):
    """The load balancers of Services. `cluster` is the value of --cluster-name."""

    def get_load_balancer(self, cluster: str, service: Service) -> LoadBalancerStatus | None:
        """Returns the status of the Service's load balancer, None if it has none."""
        ...

    def get_load_balancer_name(self, cluster: str, service: Service) -> str:
        """Returns the name that the Service's load balancer has or would have."""
        ...

    def ensure_load_balancer(
        self, cluster: str, service: Service, nodes: Sequence[Node]
    ) -> LoadBalancerStatus:
        """Creates or updates the Service's load balancer, and returns its status.

        Raises RetryAfter while it is being made, and ImplementedElsewhere if another controller
        makes it.
        """
        ...

    def update_load_balancer(self, cluster: str, service: Service, nodes: Sequence[Node]) -> None:
        """Gives the Service's load balancer these nodes. Raises ImplementedElsewhere."""
        ...

    def ensure_load_balancer_deleted(self, cluster: str, service: Service) -> None:
        """Deletes the Service's load balancer, if it has one."""
        ...


class InstancesV2(Protocol):
    """The instances behind nodes, identified by a node's name or spec.providerID."""

    def instance_exists(self, node: Node) -> bool:
        """Reports whether the instance exists, running or not. If it does not, its node is
        deleted.
        """
        ...

    def instance_shutdown(self, node: Node) -> bool:
        """Reports whether the instance is shut down."""
        ...

    def instance_metadata(self, node: Node) -> InstanceMetadata:
        """Returns what the cloud knows about the instance. Raises InstanceNotFound."""
        ...


class Zones(Protocol):
    """The zones of instances."""

    def get_zone_by_provider_id(self, provider_id: str) -> Zone:
        """Returns the zone of an instance. Raises InstanceNotFound."""
        ...

    def get_zone_by_node_name(self, name: str) -> Zone:
        """Returns the zone of the instance behind a node. Raises InstanceNotFound."""
        ...


class Routes(Protocol):
    """The routes to the pods of nodes. `cluster` is the value of --cluster-name."""

    def list_routes(self, cluster: str) -> Sequence[Route]:
        """Returns the routes of the cluster."""
        ...

    def create_route(self, cluster: str, name_hint: str, route: Route) -> None:
        """Creates a route. The cloud may use `name_hint` for its name."""
        ...

    def delete_route(self, cluster: str, route: Route) -> None:
        """Deletes a route that `list_routes` returned."""
        ...


class CloudProvider(Protocol):
    """A cloud. An interface that it does not have is None."""

    @property
    def name(self) -> str:
        """The name by which --cloud-provider selects it."""
        ...

    @property
    def load_balancers(self) -> LoadBalancers | None: ...

    @property
    def instances_v2(self) -> InstancesV2 | None: ...

    @property
    def zones(self) -> Zones | None: ...

    @property
    def routes(self) -> Routes | None: ...


def default_load_balancer_name(service: Service) -> str:
    """Returns a name for a Service's load balancer that clouds accept.

    It begins with a letter and has at most 32 characters. Source: DefaultLoadBalancerName.
    """
    return ("a" + service.uid).replace("-", "")[:32]
