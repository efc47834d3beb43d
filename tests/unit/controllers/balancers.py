"""Services of type LoadBalancer and their controller, for tests."""

from __future__ import annotations

from typing import Any

from kcm.api.core_v1 import (
    LoadBalancerIngress,
    LoadBalancerStatus,
    Service,
    ServicePort,
)
from kcm.controllers.service.controller import (
    ServiceLBController,
)
from kcm.controllers.service.wanted import (
    FINALIZER,
)
from kcm.testing.builders import service
from tests.unit.controllers.clouds import CloudWorld

KEY = "default/web"


def balanced(name: str = "web", **spec: Any) -> Service:
    return service(name, **{"type": "LoadBalancer"} | spec)


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
