"""Tests that IPAddresses and Services are made to agree, after upstream's tables.

Source: pkg/registry/core/service/ipallocator/controller/repairip_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.api.core_v1 import Service
from kcm.api.networking_v1 import IPAddress
from kcm.controllers.serviceiprepair import (
    ServiceIPRepairController,
    address_with_parent,
    addresses_of_service,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Create, Delete, Plan
from kcm.store.admission.cluster_ips import new_ip_address
from kcm.testing.builders import service
from kcm.testing.views import NOW, FakeView

KEY = "10.0.1.1 default/web"


def with_ip(name: str = "web", *ips: str) -> Service:
    ips = ips or ("10.0.1.1",)
    return service(name, type="ClusterIP", cluster_ip=ips[0], cluster_ips=list(ips))


def address(ip: str = "10.0.1.1", *, of: str = "web", age: float = 70) -> IPAddress:
    created = NOW - timedelta(seconds=age)
    return new_ip_address(ip, service(of)).with_metadata(uid=ip, creation_timestamp=created)


def plan_of(*objects: Service | IPAddress, key: str = KEY) -> Plan:
    controller = ServiceIPRepairController()
    return controller.reconcile(key, FakeView(*objects, controller=controller))


def events(plan: Plan) -> list[str]:
    return [f"{event.type} {event.reason} {event.message}" for event in plan.events]


def test_what_agrees_stays() -> None:
    assert plan_of(with_ip(), address()).writes == []
    assert plan_of().writes == []


@pytest.mark.parametrize(("ip", "family"), [("10.0.1.1", "IPv4"), ("2001:db8::10", "IPv6")])
def test_a_missing_address_is_created(ip: str, family: str) -> None:
    about = with_ip("web", "10.0.1.1", "2001:db8::10")
    plan = plan_of(about, key=f"{ip} default/web")
    assert plan.writes == [Create(new_ip_address(ip, about))]
    assert events(plan) == [
        f"Warning ClusterIPNotAllocated Cluster IP [{family}]: {ip} is not allocated; repairing"
    ]


def test_an_orphan_is_deleted_after_a_minute() -> None:
    plan = plan_of(address())
    (write,) = plan.writes
    assert isinstance(write, Delete)
    assert events(plan) == [
        "Warning IPAddressNotAllocated IPAddress: 10.0.1.1 for Service default/web appears to "
        "have leaked: cleaning up"
    ]
    young = plan_of(address(age=30))
    assert young.writes == []
    assert young.requeue_after == 60.0


def test_two_services_with_one_address_are_reported() -> None:
    plan = plan_of(with_ip(), with_ip("other"), address(of="other"))
    assert plan.writes == []
    assert events(plan) == [
        "Warning ClusterIPAlreadyAllocated Cluster IP [IPv4]: 10.0.1.1 was assigned to multiple "
        "services; please recreate service"
    ]


def test_addresses_of_others_are_left_alone() -> None:
    assert plan_of(address().with_metadata(labels={})).writes == []


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        (None, with_ip(), [KEY]),
        (with_ip(), with_ip(), []),
        (with_ip(), None, [KEY]),
        (with_ip(), with_ip("web", "10.0.1.2"), [KEY, "10.0.1.2 default/web"]),
        (None, service("web", cluster_ip="None", cluster_ips=["None"]), []),
        (with_ip(), service("web", type="ExternalName", cluster_ips=["10.0.1.1"]), [KEY]),
    ],
)
def test_addresses_that_services_get_or_lose_are_checked(
    old: Service | None, new: Service | None, keys: list[str]
) -> None:
    assert list(addresses_of_service(Change(old, new), FakeView())) == keys


def test_new_and_gone_addresses_are_checked() -> None:
    assert list(address_with_parent(Change(None, address()), FakeView())) == [KEY]
    assert list(address_with_parent(Change(address(), None), FakeView())) == [KEY]
    assert list(address_with_parent(Change(address(), address()), FakeView())) == []
