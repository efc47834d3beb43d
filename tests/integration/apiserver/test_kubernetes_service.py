from __future__ import annotations

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Endpoints, Service
from kcm.api.scheme import BUILT_IN
from kcm.apiserver.bootstrap.kubernetes_service import (
    KEY,
    KubernetesService,
    find_advertised_address,
)
from kcm.redisio import RedisIO
from kcm.store import Store

KINDS = ("services", "endpoints", "endpointslices.discovery.k8s.io")


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


def read(store: Store, kind: str) -> dict[str, Any]:
    """Returns the object of this kind that describes the API server, as JSON has it."""
    return codec.to_dict(store.get(BUILT_IN.by_name(kind), KEY))


def test_the_service_has_the_first_address_and_comes_back(store: Store) -> None:
    keeper = KubernetesService(store, "127.0.0.1", 8001)
    keeper.turn(0.0)
    spec = read(store, "services")["spec"]
    assert spec["clusterIP"] == "10.96.0.1"
    assert spec["ports"][0] == {
        "name": "https", "port": 443, "protocol": "TCP", "targetPort": 8001,
    }  # fmt: skip
    store.delete(Service.resource, KEY)
    keeper.turn(0.0)
    keeper.turn(0.0)
    assert store.count(Service.resource) == 1
    assert store.count(Endpoints.resource) == 0  # no pod reaches the loopback


def test_each_server_is_among_the_endpoints_while_it_runs(store: Store) -> None:
    first = KubernetesService(store, "192.0.2.10", 6443)
    second = KubernetesService(store, "192.0.2.20", 6443)
    first.turn(0.0)
    second.turn(0.0)
    second.turn(0.0)
    ips = ["192.0.2.10", "192.0.2.20"]
    (subset,) = read(store, "endpoints")["subsets"]
    assert [address["ip"] for address in subset["addresses"]] == ips
    endpoints = read(store, "endpointslices.discovery.k8s.io")["endpoints"]
    assert [endpoint["addresses"][0] for endpoint in endpoints] == ips
    labels = read(store, "endpoints")["metadata"]["labels"]
    assert labels == {"endpointslice.kubernetes.io/skip-mirror": "true"}
    first.end()
    (subset,) = read(store, "endpoints")["subsets"]
    assert [address["ip"] for address in subset["addresses"]] == ips[1:]


def test_an_address_that_others_cannot_reach_is_not_advertised() -> None:
    assert (
        find_advertised_address("127.0.0.1")
        == find_advertised_address("::1")
        == find_advertised_address("localhost")
        == ""
    )
    assert find_advertised_address("192.0.2.10") == "192.0.2.10"
    assert not find_advertised_address("0.0.0.0").startswith("127.")
