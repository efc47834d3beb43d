"""Tests that cluster IPs come from IPAddresses and ServiceCIDRs, and go with their Services."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.core_v1 import Service
from kcm.api.networking_v1 import IPAddress, ServiceCIDR, ServiceCIDRSpec, ServiceCIDRStatus
from kcm.apimachinery.meta_v1 import Condition, KubeObject, ObjectMeta
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.admission.cluster_ips import CLAIM_GRACE, new_ip_address
from kcm.testing.clock import FakeClock
from tests.integration.store.test_service_addresses import SERVICES, service

ADDRESSES, CIDRS = IPAddress.resource, ServiceCIDR.resource


def ranges(name: str, *cidrs: str) -> ServiceCIDR:
    return ServiceCIDR(metadata=ObjectMeta(name=name), spec=ServiceCIDRSpec(cidrs=list(cidrs)))


def addresses(store: Store) -> dict[str, str]:
    """Returns the names of the parents by address."""
    found = [obj for obj in store.list(ADDRESSES).items if isinstance(obj, IPAddress)]
    return {obj.name: str(obj.spec.parent_ref and obj.spec.parent_ref.name) for obj in found}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(io: RedisIO, settings: Settings, clock: FakeClock) -> Store:
    store = Store(io, clock)
    store.create(ranges("kubernetes", "10.9.0.0/29"))
    return store


def test_an_address_is_an_object_as_long_as_its_service_is_there(store: Store) -> None:
    ip = store.create(service("web")).spec.cluster_ip or ""
    address = store.get(IPAddress.resource, ip)
    assert dict(address.labels) == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    parent = address.spec.parent_ref
    assert parent is not None
    assert (parent.resource, parent.namespace, parent.name) == ("services", "default", "web")
    store.delete(SERVICES, "default/web")
    assert addresses(store) == {}


def test_a_service_that_is_not_written_leaves_no_address(store: Store) -> None:
    store.create(service("web", clusterIP="10.9.0.2"))
    with pytest.raises(errors.AlreadyExists):
        store.create(service("web"))
    assert addresses(store) == {"10.9.0.2": "web"}
    with pytest.raises(errors.NotFound):
        store.create(service("lost").with_metadata(namespace="nowhere"))
    assert addresses(store) == {"10.9.0.2": "web"}


def test_another_type_gets_an_address(store: Store) -> None:
    created = store.create(service("web", "ExternalName", externalName="a.example"))
    assert addresses(store) == {}
    spec = created.spec.replace(type="ClusterIP", external_name=None)
    changed = store.update(created.with_spec(spec))
    assert addresses(store) == {changed.spec.cluster_ip: "web"}


def test_a_second_range_is_used_when_the_first_is_full(store: Store) -> None:
    for number in range(5):  # .1 is the kubernetes service's
        store.create(service(f"s{number}"))
    with pytest.raises(errors.ApiError, match="range is full"):
        store.create(service("more"))
    store.create(ranges("second", "10.20.0.0/28"))
    more = store.create(service("more")).spec.cluster_ip or ""
    assert more.startswith("10.20.0.")
    free = "10.20.0.13" if more == "10.20.0.14" else "10.20.0.14"
    assert store.create(service("asked", clusterIP=free)).spec.cluster_ip == free
    with pytest.raises(errors.Invalid, match=r"valid IPs is 10\.9\.0\.0/29, 10\.20\.0\.0/28"):
        store.create(service("outside", clusterIP="10.30.0.1"))


def not_ready(cidr: KubeObject) -> KubeObject:
    status = ServiceCIDRStatus(conditions=[Condition(type="Ready", status="False")])
    return cidr.replace(status=status)


def test_a_range_that_is_not_ready_or_goes_gives_no_addresses(store: Store) -> None:
    first = store.create(ranges("a", "10.20.0.0/28"))
    store.replace(not_ready(first))
    held = ranges("b", "10.21.0.0/28").with_metadata(finalizers=["example.com/held"])
    store.create(held)
    store.delete(CIDRS, "b")
    for number in range(5):
        store.create(service(f"s{number}"))
    with pytest.raises(errors.ApiError, match="range is full"):
        store.create(service("more"))


def test_a_range_of_the_other_family_serves_who_asks_for_it(store: Store) -> None:
    store.create(ranges("v6", "fd00::/112"))
    spec = store.create(service("six", ipFamilies=["IPv6"], ipFamilyPolicy="SingleStack")).spec
    assert (spec.cluster_ip or "").startswith("fd00::")
    assert store.create(service("four")).spec.ip_families == ["IPv4"]


def test_an_address_that_somebody_reserved_is_left_alone(store: Store) -> None:
    mine = new_ip_address("10.9.0.3", service("web")).with_metadata(labels={})
    store.create(mine)
    given = {store.create(service(f"s{number}")).spec.cluster_ip for number in range(4)}
    assert given == {"10.9.0.2", "10.9.0.4", "10.9.0.5", "10.9.0.6"}
    with pytest.raises(errors.ApiError, match="range is full"):
        store.create(service("more"))
    with pytest.raises(errors.Invalid, match="provided IP is already allocated"):
        store.create(service("asked", clusterIP="10.9.0.3"))


def test_an_address_that_was_left_over_is_given_again_after_a_minute(
    store: Store, clock: FakeClock
) -> None:
    store.create(new_ip_address("10.9.0.3", service("crashed")))
    with pytest.raises(errors.Invalid, match="provided IP is already allocated"):
        store.create(service("web", clusterIP="10.9.0.3"))
    clock.step(CLAIM_GRACE.total_seconds())
    assert store.create(service("web", clusterIP="10.9.0.3")).spec.cluster_ip == "10.9.0.3"
    assert addresses(store) == {"10.9.0.3": "web"}


def test_services_of_one_batch_are_claimed_apart(store: Store) -> None:
    one = store.build_create(service("one", clusterIP="10.9.0.4"))
    store.create(service("taken", clusterIP="10.9.0.5"))
    stale = store.build_create(service("two", clusterIP="10.9.0.6"))
    store.create(service("fast", clusterIP="10.9.0.6"))
    first, second = store.write([one, stale])
    assert first.ok
    assert not second.ok
    assert addresses(store) == {"10.9.0.4": "one", "10.9.0.5": "taken", "10.9.0.6": "fast"}
    assert isinstance(second.item.obj, Service)
