"""Tests cluster IPs and node ports of Services, for concurrent writers and exhausted ranges too."""

from __future__ import annotations

import ipaddress
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Service
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.admission.service_addresses import Ranges

SERVICES = Service.resource
RANGE = ipaddress.ip_network("10.96.0.0/12")


def service(name: str, kind: str = "ClusterIP", ports: Any = None, **spec: Any) -> Service:
    body = {"type": kind, "ports": ports or [{"name": "a", "port": 80}]} | spec
    obj = codec.decode(
        {
            "apiVersion": "v1", "kind": "Service", "spec": body,
            "metadata": {"name": name, "namespace": "default"},
        },
        SERVICES,
    )  # fmt: skip
    assert isinstance(obj, Service)
    return obj


def small(settings: Settings, **ranges: str) -> Store:
    named = {f"service_{name}": value for name, value in ranges.items()}
    io = RedisIO(settings.model_copy(update=named))
    return Store(io)


def test_a_service_gets_an_address_of_the_range(store: Store) -> None:
    spec = store.create(service("a")).spec
    assert ipaddress.ip_address(spec.cluster_ip or "") in RANGE
    assert spec.cluster_ips == [spec.cluster_ip]
    assert (spec.ip_families, spec.ip_family_policy) == (["IPv4"], "SingleStack")


def test_headless_and_external_services_get_none(store: Store) -> None:
    headless = store.create(service("headless", clusterIP="None")).spec
    assert headless.cluster_ips == ["None"]
    other = store.create(service("other", clusterIP="None"))  # nobody holds "None"
    assert other.spec.cluster_ip == "None"
    external = store.create(service("ext", "ExternalName", externalName="a.example")).spec
    assert (external.cluster_ip, external.cluster_ips) == (None, None)


@pytest.mark.parametrize("kind", ["ClusterIP", "NodePort", "LoadBalancer"])
def test_two_families_cannot_be_required_as_there_is_one(store: Store, kind: str) -> None:
    dual = {"ipFamilyPolicy": "RequireDualStack"}
    with pytest.raises(errors.Invalid) as refused:
        store.create(service("dual", kind, **dual))
    assert refused.value.message == (
        'Service "dual" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
        "this cluster is not configured for dual-stack services"
    )


def test_a_headless_service_with_a_selector_cannot_require_two_families(store: Store) -> None:
    dual: dict[str, Any] = {"ipFamilyPolicy": "RequireDualStack", "selector": {"a": "b"}}
    with pytest.raises(errors.Invalid, match="not configured for dual-stack"):
        store.create(service("dual", clusterIP="None", **dual))


def test_one_family_will_do_where_two_are_preferred_or_nobody_gets_an_address(
    store: Store,
) -> None:
    preferred = store.create(service("preferred", ipFamilyPolicy="PreferDualStack")).spec
    assert (preferred.ip_families, len(preferred.cluster_ips or ())) == (["IPv4"], 1)
    manual = service("manual", clusterIP="None", ipFamilyPolicy="RequireDualStack")
    assert store.create(manual).spec.ip_family_policy == "RequireDualStack"


def test_an_address_belongs_to_one_service_until_that_is_gone(store: Store) -> None:
    store.create(service("first", clusterIP="10.96.7.7"))
    with pytest.raises(errors.Invalid) as refused:
        store.create(service("second", clusterIP="10.96.7.7"))
    assert refused.value.message == (
        'Service "second" is invalid: spec.clusterIPs: Invalid value: []string{"10.96.7.7"}: '
        "failed to allocate IP 10.96.7.7: provided IP is already allocated"
    )
    store.delete(SERVICES, "default/first")
    assert store.create(service("second", clusterIP="10.96.7.7")).spec.cluster_ip == "10.96.7.7"


@pytest.mark.parametrize(
    ("new_service", "text"),
    [
        (service("x", clusterIP="192.0.2.1"), r"not in the valid range.*10\.96\.0\.0/12"),
        (service("x", "NodePort", [{"port": 1, "nodePort": 80}]), "30000-32767"),
    ],
)
def test_what_is_outside_of_the_ranges_is_refused(
    store: Store, new_service: Service, text: str
) -> None:
    with pytest.raises(errors.Invalid, match=text):
        store.create(new_service)


def test_node_ports_are_given_and_shared_by_protocols(store: Store) -> None:
    ports = [
        {"name": "tcp", "port": 53, "protocol": "TCP"},
        {"name": "udp", "port": 53, "protocol": "UDP"},
        {"name": "web", "port": 80},
    ]
    given = [
        port.node_port or 0
        for port in store.create(service("n", "NodePort", ports)).spec.ports or ()
    ]
    assert given[0] == given[1] != given[2]
    assert all(30000 <= port <= 32767 for port in given)
    with pytest.raises(errors.Invalid, match="provided port is already allocated"):
        store.create(service("m", "NodePort", [{"port": 1, "nodePort": given[2]}]))


def test_another_type_takes_ports_and_gives_them_back(store: Store) -> None:
    created_service = store.create(service("s"))
    raised = store.update(created_service.with_spec(created_service.spec.replace(type="NodePort")))
    port = (raised.spec.ports or [])[0].node_port
    assert port
    assert raised.spec.cluster_ip == created_service.spec.cluster_ip
    again = store.update(raised.with_spec(raised.spec.replace(session_affinity="None")))
    assert (again.spec.ports or [])[0].node_port == port
    lowered = store.update(again.with_spec(again.spec.replace(type="ClusterIP")))
    assert (lowered.spec.ports or [])[0].node_port is None
    taken = store.create(service("t", "NodePort", [{"port": 1, "nodePort": port}]))
    assert (taken.spec.ports or [])[0].node_port == port


@pytest.mark.redis_only
def test_a_full_range_says_so(store: Store, settings: Settings) -> None:
    tiny = small(settings, cluster_ip_range="10.9.0.0/29")
    for number in range(5):  # .1 is the kubernetes service's
        tiny.create(service(f"s{number}"))
    with pytest.raises(errors.ApiError, match="failed to allocate a serviceIP: range is full"):
        tiny.create(service("more"))
    tiny.delete(SERVICES, "default/s3")
    tiny.create(service("more"))


@pytest.mark.redis_only
def test_many_at_once_never_share(store: Store, settings: Settings) -> None:
    tight = small(settings, cluster_ip_range="10.9.0.0/26", node_port_range="30000-30059")

    def create(number: int) -> tuple[str, int]:
        spec = tight.create(service(f"s{number}", "NodePort")).spec
        return spec.cluster_ip or "", (spec.ports or [])[0].node_port or 0

    with ThreadPoolExecutor(8) as pool:
        addresses = list(pool.map(create, range(55)))
    assert len({ip for ip, _ in addresses}) == len({port for _, port in addresses}) == 55


@pytest.mark.parametrize(
    ("network", "ports"), [("rubbish", "1-2"), ("10.0.0.0/30", "1-2"), ("10.0.0.0/8", "9-1")]
)
def test_ranges_that_make_no_sense_are_named(network: str, ports: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="KCM_SERVICE_"):
        Ranges.parse(network, ports)
