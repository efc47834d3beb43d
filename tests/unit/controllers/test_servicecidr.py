"""Tests the finalizers and conditions of ServiceCIDRs, after upstream's tables.

Source: pkg/controller/servicecidrs/servicecidrs_controller_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.api.networking_v1 import IPAddress, ServiceCIDR, ServiceCIDRSpec
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.controllers.servicecidr import (
    ALLOCATOR,
    FINALIZER,
    GRACE,
    MANAGED_BY,
    ServiceCIDRController,
    changed_ranges,
    ranges_of_address,
)
from kcm.reconcile.contract import Change
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World

V4, V6 = "192.168.0.0/24", "2001:db2::/64"


def ranges(name: str, *cidrs: str, deleted_for: timedelta | None = None) -> ServiceCIDR:
    deleted = {} if deleted_for is None else {"deletion_timestamp": NOW - deleted_for}
    finalizers = [FINALIZER] if deleted else None
    meta = ObjectMeta(name=name, uid=name, finalizers=finalizers, **deleted)
    return ServiceCIDR(metadata=meta, spec=ServiceCIDRSpec(cidrs=list(cidrs)))


def ip(name: str) -> IPAddress:
    return IPAddress(metadata=ObjectMeta(name=name, uid=name, labels={MANAGED_BY: ALLOCATOR}))


DELETED = ranges("deleted", V4, V6, deleted_for=GRACE + timedelta(seconds=1))
DELETING = ranges("deleting", V4, V6, deleted_for=timedelta(seconds=1))


def sync(about: ServiceCIDR, *others: ServiceCIDR | IPAddress) -> tuple[World, float | None]:
    world = World(about, *others)
    controller = ServiceCIDRController()
    plan = controller.reconcile(about.name, FakeView(about, *others, controller=controller))
    world.carry_out(plan)
    return world, plan.requeue_after


def ready(world: World, name: str) -> tuple[str, str]:
    cidr = world.objects["servicecidrs.networking.k8s.io", name]
    assert isinstance(cidr, ServiceCIDR)
    (condition,) = cidr.status.conditions or []
    return condition.status, condition.reason


# TestControllerSync


@pytest.mark.parametrize("name", ["kubernetes", "no-finalizer"])
def test_one_that_is_in_use_has_the_finalizer_and_is_ready(name: str) -> None:
    world, _ = sync(ranges(name, V4, V6))
    (cidr,) = world.of(ServiceCIDR)
    assert cidr.metadata.finalizers == [FINALIZER]
    assert ready(world, name) == ("True", "")
    view = FakeView(cidr)
    assert ServiceCIDRController().reconcile(name, view).writes == []


def test_one_that_is_not_needed_goes_after_the_grace_period() -> None:
    assert sync(DELETED)[0].of(ServiceCIDR) == []
    world, again = sync(DELETING)
    assert len(world.of(ServiceCIDR)) == 1
    assert again == 9.0


@pytest.mark.parametrize(
    ("address", "others", "goes"),
    [
        ("192.168.0.1", [], False),
        ("192.168.0.1", [V4, V6], True),
        ("192.168.0.1", ["192.168.0.0/16", V6], True),
        ("192.168.0.1", ["192.168.255.0/26", V6], False),
        ("2001:db2::1", [], False),
        ("2001:db2::1", [V4, V6], True),
        ("2001:db2::1", ["192.168.0.0/16", "2001:db2::/48"], True),
        ("2001:db2::1", ["192.168.255.0/26", "2001:db2:a:b::/64"], False),
        # TestController_canDeleteCIDR
        ("192.168.1.24", [], True),
        ("192.168.0.0", [], True),
        ("192.168.0.255", [], True),
        ("2001:db2::ffff:ffff:ffff:ffff", [], False),
        ("192.168.0.23", ["192.168.0.0/26", V6], True),
        ("192.168.0.23", ["192.168.0.0/28", V6], False),
    ],
)
def test_no_address_in_use_may_be_outside_of_all_ranges(
    address: str, others: list[str], goes: bool
) -> None:
    others_there = [ranges("other", *others)] if others else []
    world, _ = sync(DELETED, ip(address), *others_there)
    left = [cidr for cidr in world.of(ServiceCIDR) if cidr.name == "deleted"]
    assert bool(left) != goes
    if left:
        assert ready(world, "deleted") == ("False", "Terminating")


def test_addresses_of_others_do_not_count() -> None:
    other = ip("192.168.0.7").with_metadata(labels={MANAGED_BY: "somebody"})
    assert sync(DELETED, other)[0].of(ServiceCIDR) == []


# TestController_ipToCidrs, TestController_cidrToCidrs


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("192.168.0.23", ["kubernetes", "overlapping", "small"]),
        ("192.168.0.0", []),
        ("192.168.0.63", ["kubernetes", "overlapping"]),
        ("2001:db2::", []),
        ("10.9.9.9", []),
    ],
)
def test_an_address_enqueues_the_ranges_that_contain_it(address: str, names: list[str]) -> None:
    view = FakeView(
        ranges("kubernetes", V4, V6),
        ranges("overlapping", V4, V6),
        ranges("small", "192.168.0.0/26", "2001:db2::/96"),
        ranges("unrelated", "10.0.0.0/24"),
    )
    assert sorted(ranges_of_address(Change(None, ip(address)), view)) == names
    assert list(ranges_of_address(Change(ip(address), ip(address)), view)) == []


def test_a_new_range_enqueues_those_that_it_overlaps() -> None:
    new = ranges("new", "192.168.0.0/28")
    view = FakeView(new, DELETED, ranges("unrelated", "10.0.0.0/24"), ranges("odd", "nonsense"))
    assert list(changed_ranges(Change(None, new), view)) == ["new", "deleted"]
    assert list(changed_ranges(Change(new, new), view)) == ["new"]
