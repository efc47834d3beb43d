"""Which pod a request for a Service goes to. Names and addresses of every form are tried against a
server in tests/integration/apiserver/test_proxy.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.egress.services import ServiceUnavailable
from kcm.apiserver.egress.targets import find_service
from tests.unit.apiserver.auth.caches import FakeHub

MANY = 300


def build(kind: str, name: str, api_version: str = "v1", **fields: Any) -> KubeObject:
    labels = fields.pop("labels", {})
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return codec.decode(
        {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}, BUILT_IN
    )


def pod(number: int) -> KubeObject:
    return build("Pod", f"pod-{number}", status={"podIP": address(number)})


def address(number: int) -> str:
    return f"10.1.{number // 250}.{number % 250 + 1}"


def refer(number: int) -> dict[str, Any]:
    return {"kind": "Pod", "namespace": "default", "name": f"pod-{number}"}


SERVICE = build("Service", "web", spec={"ports": [{"name": "http", "port": 80}]})


def endpoints(numbers: range) -> KubeObject:
    addresses = [{"ip": address(number), "targetRef": refer(number)} for number in numbers]
    subset = {"addresses": addresses, "ports": [{"name": "http", "port": 8080}]}
    return build("Endpoints", "web", subsets=[subset])


def piece(name: str, number: int, service: str = "web") -> KubeObject:
    endpoint = {"addresses": [address(number)], "targetRef": refer(number)}
    return build(
        "EndpointSlice", name, "discovery.k8s.io/v1", addressType="IPv4", endpoints=[endpoint],
        ports=[{"name": "http", "port": 9090}], labels={"kubernetes.io/service-name": service},
    )  # fmt: skip


def test_all_is_read_from_caches_that_have_what_is_stored_now() -> None:
    hub = FakeHub(SERVICE, endpoints(range(MANY)), *(pod(number) for number in range(MANY)))
    found = {find_service(hub, "default", "web:http").url for _ in range(100)}
    assert len(found) > 20
    assert all(url.startswith("http://10.1.") and url.endswith(":8080") for url in found)
    assert hub.waited == ["services", "endpoints", "endpointslices.discovery.k8s.io", "pods"] * 100


def test_the_only_pod_that_is_there_is_found_among_many_that_are_gone() -> None:
    hub = FakeHub(SERVICE, endpoints(range(MANY)), pod(77))
    assert find_service(hub, "default", "https:web:80").url == f"https://{address(77)}:8080"


def test_slices_of_other_services_do_not_count() -> None:
    hub = FakeHub(SERVICE, piece("a", 1, "other"), piece("b", 2), pod(1), pod(2))
    assert find_service(hub, "default", "web:80").url == f"http://{address(2)}:9090"


def test_a_service_without_pods_is_not_available() -> None:
    with pytest.raises(ServiceUnavailable, match='no endpoints available for service "web:80"'):
        find_service(FakeHub(SERVICE, endpoints(range(3))), "default", "web:80")


def test_a_service_may_be_missing() -> None:
    with pytest.raises(errors.NotFound, match='services "web" not found'):
        find_service(FakeHub(), "default", "web:80")
