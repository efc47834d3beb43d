"""Services of type LoadBalancer and their controller, for tests."""

from __future__ import annotations

from typing import Any

from kcm.api.core_v1 import (
    LoadBalancerIngress,
    LoadBalancerStatus,
    Service,
    ServicePort,
)
from kcm.controllers.cloud.service.controller import (
    ServiceLBController,
)
from kcm.controllers.cloud.service.wanted import (
    FINALIZER,
)
from kcm.testing.builders import service
from tests.unit.controllers.clouds import CloudWorld

KEY = "default/web"


# The addresses that the store gives to such a Service when it is created.
ADDRESSES: dict[str, Any] = {
    "cluster_ip": "10.96.0.10",
    "cluster_ips": ["10.96.0.10"],
    "ip_families": ["IPv4"],
    "ip_family_policy": "SingleStack",
    "ports": [ServicePort(port=80, protocol="TCP", node_port=30080)],
}


def balanced(name: str = "web", **spec: Any) -> Service:
    if spec.get("external_traffic_policy") == "Local":
        spec = {"health_check_node_port": 30081} | spec
    return service(name, **{"type": "LoadBalancer"} | ADDRESSES | spec)


def with_status(about: Service, ip: str) -> Service:
    status = LoadBalancerStatus(ingress=[LoadBalancerIngress(ip=ip, ip_mode="VIP")])
    return about.with_status(about.status.replace(load_balancer=status))


def finalized(about: Service, **metadata: Any) -> Service:
    return with_status(about.with_metadata(finalizers=[FINALIZER], **metadata), "8.8.8.8")


def world(*objects: Any) -> CloudWorld:
    return CloudWorld(ServiceLBController(), *objects)


def stored(within: CloudWorld) -> Service:
    (found,) = within.of(Service)
    assert isinstance(found, Service)
    return found


def ips(about: Service) -> list[str | None]:
    return [ingress.ip for ingress in about.status.load_balancer.ingress or ()]


def ports(protocol: str) -> dict[str, Any]:
    return {"ports": (ServicePort(port=80, protocol=protocol),)}
