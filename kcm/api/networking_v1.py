"""networking.k8s.io/v1: NetworkPolicy, Ingress and IngressClass.

Source: staging/src/k8s.io/api/networking/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kcm.api.core_v1.handlers import IntOrString
from kcm.api.core_v1.references import TypedLocalObjectReference
from kcm.apimachinery.base import Int32, Model
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector


class IPBlock(Model):
    """A range of addresses, and ranges of it that are left out."""

    cidr: str = ""
    except_: list[str] | None = Field(default=None, alias="except")


class NetworkPolicyPeer(Model):
    """Whom traffic comes from or goes to: pods and namespaces by label, or addresses."""

    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: IPBlock | None = None


class NetworkPolicyPort(Model):
    """A port, or a range of ports."""

    protocol: str | None = None
    port: IntOrString | None = None
    end_port: Int32 | None = None


class NetworkPolicyIngressRule(Model):
    """Traffic to the chosen pods that is allowed."""

    ports: list[NetworkPolicyPort] | None = None
    from_: list[NetworkPolicyPeer] | None = Field(default=None, alias="from")


class NetworkPolicyEgressRule(Model):
    """Traffic of the chosen pods that is allowed."""

    ports: list[NetworkPolicyPort] | None = None
    to: list[NetworkPolicyPeer] | None = None


class NetworkPolicySpec(Model):
    """Which pods are isolated, and what traffic they may have."""

    pod_selector: LabelSelector = Field(default_factory=LabelSelector)
    ingress: list[NetworkPolicyIngressRule] | None = None
    egress: list[NetworkPolicyEgressRule] | None = None
    policy_types: list[str] | None = None


class ServiceBackendPort(Model):
    """A port of a service, by name or number."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    number: Int32 | None = None


class IngressServiceBackend(Model):
    """A service, and one of its ports."""

    name: str = ""
    port: ServiceBackendPort = Field(default_factory=ServiceBackendPort)


class IngressBackend(Model):
    """Where requests go: a service or another object."""

    service: IngressServiceBackend | None = None
    resource: TypedLocalObjectReference | None = None


class HTTPIngressPath(Model):
    """A path, and where its requests go."""

    path: str | None = None
    path_type: str | None = None
    backend: IngressBackend = Field(default_factory=IngressBackend)


class HTTPIngressRuleValue(Model):
    """The paths of a host."""

    paths: list[HTTPIngressPath] = Field(default_factory=list)


class IngressRule(Model):
    """A host, and where its requests go."""

    host: str | None = None
    http: HTTPIngressRuleValue | None = None


class IngressTLS(Model):
    """Hosts whose requests come by TLS, and the Secret with key and certificate."""

    hosts: list[str] | None = None
    secret_name: str | None = None


class IngressSpec(Model):
    """How requests from outside reach services."""

    ingress_class_name: str | None = None
    default_backend: IngressBackend | None = None
    tls: list[IngressTLS] | None = None
    rules: list[IngressRule] | None = None


class IngressPortStatus(Model):
    """Whether a port of a load balancer works."""

    port: Int32 = 0
    protocol: str = ""
    error: str | None = None


class IngressLoadBalancerIngress(Model):
    """An address of the load balancer."""

    ip: str | None = None
    hostname: str | None = None
    ports: list[IngressPortStatus] | None = None


class IngressLoadBalancerStatus(Model):
    """The addresses of the load balancer."""

    ingress: list[IngressLoadBalancerIngress] | None = None


class IngressStatus(Model):
    """What was last seen of an ingress."""

    load_balancer: IngressLoadBalancerStatus = Field(default_factory=IngressLoadBalancerStatus)


class IngressClassParametersReference(Model):
    """An object with further settings of a class."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    scope: str | None = None
    namespace: str | None = None


class IngressClassSpec(Model):
    """Which controller an ingress class is of."""

    controller: str | None = None
    parameters: IngressClassParametersReference | None = None


class NetworkPolicy(KubeObject):
    """The traffic that pods may receive and send. kcm stores it, but does not enforce it."""

    api_version: str = "networking.k8s.io/v1"
    kind: str = "NetworkPolicy"
    spec: NetworkPolicySpec = Field(default_factory=NetworkPolicySpec)


class Ingress(KubeObject):
    """Requests from outside, and the services they reach."""

    api_version: str = "networking.k8s.io/v1"
    kind: str = "Ingress"
    spec: IngressSpec = Field(default_factory=IngressSpec)
    status: IngressStatus = Field(default_factory=IngressStatus)


class IngressClass(KubeObject):
    """A class of ingresses, and the controller that serves it."""

    api_version: str = "networking.k8s.io/v1"
    kind: str = "IngressClass"
    spec: IngressClassSpec = Field(default_factory=IngressClassSpec)
