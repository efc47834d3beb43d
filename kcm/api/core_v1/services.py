"""core/v1: Service and Endpoints.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.handlers import IntOrString
from kcm.apimachinery.base import Atomic, Bool, Int32, MergeKey, Model, StringMap
from kcm.apimachinery.meta_v1 import Condition, KubeObject


class ServicePort(Model):
    """A port of a Service, and the port of its pods that the traffic goes to."""

    name: str | None = None
    protocol: str | None = None
    app_protocol: str | None = None
    port: Int32 = 0
    target_port: IntOrString | None = None
    node_port: Int32 | None = None


class ClientIPConfig(Model):
    """The settings of session affinity by the client's IP address."""

    timeout_seconds: Int32 | None = None


class SessionAffinityConfig(Model):
    """The settings of a Service's session affinity."""

    client_ip: ClientIPConfig | None = Field(default=None, alias="clientIP")


class ServiceSpec(Model):
    """The pods behind a Service, and the addresses and ports at which clients reach them."""

    ports: Annotated[
        list[ServicePort] | None,
        MergeKey("port", ("port", "protocol"), key_defaults=(("protocol", "TCP"),)),
    ] = None
    selector: Annotated[StringMap | None, Atomic()] = None
    cluster_ip: str | None = None
    cluster_ips: list[str] | None = None
    type: str | None = None
    external_ips: list[str] | None = None
    session_affinity: str | None = None
    load_balancer_ip: str | None = None
    load_balancer_source_ranges: list[str] | None = None
    external_name: str | None = None
    external_traffic_policy: str | None = None
    health_check_node_port: Int32 | None = None
    publish_not_ready_addresses: Bool | None = None
    session_affinity_config: SessionAffinityConfig | None = None
    ip_families: list[str] | None = None
    ip_family_policy: str | None = None
    allocate_load_balancer_node_ports: Bool | None = None
    load_balancer_class: str | None = None
    internal_traffic_policy: str | None = None
    traffic_distribution: str | None = None


class PortStatus(Model):
    """A port of a load balancer, and the error that it has."""

    port: Int32 = 0
    protocol: str = ""
    error: str | None = None


class LoadBalancerIngress(Model):
    """An IP address or host name of a Service's load balancer."""

    ip: str | None = None
    hostname: str | None = None
    ip_mode: str | None = None
    ports: list[PortStatus] | None = None


class LoadBalancerStatus(Model):
    """The addresses of a load balancer."""

    ingress: list[LoadBalancerIngress] | None = None


class ServiceStatus(Model):
    """The last observed state of a Service and its load balancer."""

    load_balancer: LoadBalancerStatus = Field(default_factory=LoadBalancerStatus)
    conditions: Annotated[list[Condition] | None, MergeKey("type")] = None


class Service(KubeObject):
    """A stable name and address for a set of pods. kcm allocates the address, but runs no
    kube-proxy.
    """

    api_version: str = "v1"
    kind: str = "Service"
    spec: ServiceSpec = Field(default_factory=ServiceSpec)
    status: ServiceStatus = Field(default_factory=ServiceStatus)


class EndpointAddress(Model):
    """The IP address of one endpoint of a Service."""

    kubernetes_atomic: ClassVar[bool] = True

    ip: str = ""
    hostname: str | None = None
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Model):
    """A port of the endpoints of a Service."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    port: Int32 = 0
    protocol: str | None = None
    app_protocol: str | None = None


class EndpointSubset(Model):
    """Endpoints that all have the same ports."""

    addresses: list[EndpointAddress] | None = None
    not_ready_addresses: list[EndpointAddress] | None = None
    ports: list[EndpointPort] | None = None


class Endpoints(KubeObject):
    """The endpoints of the Service of the same name. EndpointSlices have replaced it."""

    api_version: str = "v1"
    kind: str = "Endpoints"
    subsets: list[EndpointSubset] | None = None
