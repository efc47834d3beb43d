"""networking.k8s.io/v1: NetworkPolicy, Ingress, IngressClass, ServiceCIDR and IPAddress.

Source: staging/src/k8s.io/api/networking/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kcm.api.core_v1.handlers import IntOrString
from kcm.api.core_v1.references import TypedLocalObjectReference
from kcm.apimachinery.base import Int32, MergeKey, Model
from kcm.apimachinery.meta_v1 import Condition, KubeObject, LabelSelector


class IPBlock(Model):
    """A range of IP addresses, and ranges within it that are excluded."""

    cidr: str = ""
    except_: list[str] | None = Field(default=None, alias="except")


class NetworkPolicyPeer(Model):
    """The other side of allowed traffic: pods and namespaces by label, or IP addresses."""

    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: IPBlock | None = None


class NetworkPolicyPort(Model):
    """A port, or a range of ports, to which traffic is allowed."""

    protocol: str | None = None
    port: IntOrString | None = None
    end_port: Int32 | None = None


class NetworkPolicyIngressRule(Model):
    """Traffic that the selected pods may receive."""

    ports: list[NetworkPolicyPort] | None = None
    from_: list[NetworkPolicyPeer] | None = Field(default=None, alias="from")


class NetworkPolicyEgressRule(Model):
    """Traffic that the selected pods may send."""

    ports: list[NetworkPolicyPort] | None = None
    to: list[NetworkPolicyPeer] | None = None


class NetworkPolicySpec(Model):
    """The pods to which a policy applies, and the traffic that it allows them."""

    pod_selector: LabelSelector = Field(default_factory=LabelSelector)
    ingress: list[NetworkPolicyIngressRule] | None = None
    egress: list[NetworkPolicyEgressRule] | None = None
    policy_types: list[str] | None = None


class ServiceBackendPort(Model):
    """A port of a Service, by name or by number."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    number: Int32 | None = None


class IngressServiceBackend(Model):
    """A Service, and the port of it that gets the requests."""

    name: str = ""
    port: ServiceBackendPort = Field(default_factory=ServiceBackendPort)


class IngressBackend(Model):
    """The destination of requests: a Service or another object of the same namespace."""

    service: IngressServiceBackend | None = None
    resource: TypedLocalObjectReference | None = None


class HTTPIngressPath(Model):
    """A path, and the backend that gets its requests."""

    path: str | None = None
    path_type: str | None = None
    backend: IngressBackend = Field(default_factory=IngressBackend)


class HTTPIngressRuleValue(Model):
    """The paths of a host and their backends."""

    paths: list[HTTPIngressPath] = Field(default_factory=list)


class IngressRule(Model):
    """A host, and the backends of its paths."""

    host: str | None = None
    http: HTTPIngressRuleValue | None = None


class IngressTLS(Model):
    """Hosts that are served by TLS, and the Secret with their private key and certificate."""

    hosts: list[str] | None = None
    secret_name: str | None = None


class IngressSpec(Model):
    """How HTTP requests from outside the cluster are routed to Services."""

    ingress_class_name: str | None = None
    default_backend: IngressBackend | None = None
    tls: list[IngressTLS] | None = None
    rules: list[IngressRule] | None = None


class IngressPortStatus(Model):
    """A port of a load balancer, and the error that it has."""

    port: Int32 = 0
    protocol: str = ""
    error: str | None = None


class IngressLoadBalancerIngress(Model):
    """An IP address or host name of an Ingress' load balancer."""

    ip: str | None = None
    hostname: str | None = None
    ports: list[IngressPortStatus] | None = None


class IngressLoadBalancerStatus(Model):
    """The addresses of an Ingress' load balancer."""

    ingress: list[IngressLoadBalancerIngress] | None = None


class IngressStatus(Model):
    """The last observed state of an Ingress."""

    load_balancer: IngressLoadBalancerStatus = Field(default_factory=IngressLoadBalancerStatus)


class IngressClassParametersReference(Model):
    """An object with further settings for the controller of an IngressClass."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    scope: str | None = None
    namespace: str | None = None


class IngressClassSpec(Model):
    """The controller that serves the Ingresses of a class, and its parameters."""

    controller: str | None = None
    parameters: IngressClassParametersReference | None = None


class NetworkPolicy(KubeObject):
    """The traffic that pods may receive and send. kcm stores it, but does not enforce it."""

    api_version: str = "networking.k8s.io/v1"
    kind: str = "NetworkPolicy"
    spec: NetworkPolicySpec = Field(default_factory=NetworkPolicySpec)


class Ingress(KubeObject):
    """Routes HTTP requests from outside to Services. kcm stores the object, but routes nothing."""

    api_version: str = "networking.k8s.io/v1"
    kind: str = "Ingress"
    spec: IngressSpec = Field(default_factory=IngressSpec)
    status: IngressStatus = Field(default_factory=IngressStatus)


class IngressClass(KubeObject):
    """A class of Ingresses, and the controller that serves them. kcm has no such controller."""

    api_version: str = "networking.k8s.io/v1"
    kind: str = "IngressClass"
    spec: IngressClassSpec = Field(default_factory=IngressClassSpec)


class ServiceCIDRSpec(Model):
    """The ranges of a ServiceCIDR, one of each IP family at most."""

    cidrs: list[str] | None = Field(default=None, alias="cidrs")


class ServiceCIDRStatus(Model):
    """The last observed state of a ServiceCIDR."""

    conditions: Annotated[list[Condition] | None, MergeKey("type")] = None


class ServiceCIDR(KubeObject):
    """Ranges of addresses from which Services get their cluster IPs."""

    api_version: str = "networking.k8s.io/v1"
    kind: str = "ServiceCIDR"
    spec: ServiceCIDRSpec = Field(default_factory=ServiceCIDRSpec)
    status: ServiceCIDRStatus = Field(default_factory=ServiceCIDRStatus)


class ParentReference(Model):
    """The object that has an IP address."""

    group: str | None = None
    resource: str | None = None
    namespace: str | None = None
    name: str | None = None


class IPAddressSpec(Model):
    """The owner of an IP address."""

    parent_ref: ParentReference | None = None


class IPAddress(KubeObject):
    """An address that is in use. Its name is the address."""

    api_version: str = "networking.k8s.io/v1"
    kind: str = "IPAddress"
    spec: IPAddressSpec = Field(default_factory=IPAddressSpec)
