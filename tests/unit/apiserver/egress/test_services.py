"""The cases follow TestResolve in staging/src/k8s.io/apiserver/pkg/util/proxy/proxy_test.go,
those that ask for endpoints.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN, Resource
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.apiserver.egress.services import Address, ServiceResolver, ServiceUnavailable

META = {"name": "alfa", "namespace": "one"}


class Objects:
    """Watch caches with these objects."""

    scheme = BUILT_IN

    def __init__(self, *objects: KubeObject) -> None:
        self._caches: dict[str, WatchCache] = {}
        self.fill(*objects)

    def fill(self, *objects: KubeObject) -> None:
        for name in ("services", "endpoints", "endpointslices", "nodes"):
            resource = BUILT_IN.lookup(name)
            mine = [obj for obj in objects if obj.resource is resource]
            self.cache(resource).refill([Entry.build(resource, obj, 1) for obj in mine], 1)

    def cache(self, resource: Resource[Kind]) -> WatchCache[Kind]:
        return cast(
            "WatchCache[Kind]", self._caches.setdefault(resource.name, WatchCache(resource))
        )


def service(type_: str = "ClusterIP", **spec: Any) -> KubeObject:
    ports = [{"name": "https", "port": 443}, {"name": "other", "port": 1234}]
    body = {"type": type_, "clusterIP": "10.0.0.1", "ports": ports, **spec}
    return codec.decode(
        {"apiVersion": "v1", "kind": "Service", "metadata": META, "spec": body}, BUILT_IN
    )


def endpoints(*addresses: str, name: str = "https", ready: bool = True) -> KubeObject:
    field = "addresses" if ready else "notReadyAddresses"
    subset = {field: [{"ip": ip} for ip in addresses], "ports": [{"name": name, "port": 8443}]}
    return codec.decode(
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": META, "subsets": [subset]}, BUILT_IN
    )


def on_nodes(**nodes: str) -> KubeObject:
    """Returns Endpoints with an address on each node, whose names have _ for -."""
    listed = [{"ip": ip, "nodeName": name.replace("_", "-")} for name, ip in nodes.items()]
    subset = {"addresses": listed, "ports": [{"name": "https", "port": 8443}]}
    return codec.decode(
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": META, "subsets": [subset]}, BUILT_IN
    )


SIMULATED = codec.decode(
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1", "labels": {SIMULATOR_LABEL: "node"}},
    },
    BUILT_IN,
)


def piece(*addresses: str, ready: bool | None = True, owner: str = "alfa") -> KubeObject:
    conditions = {} if ready is None else {"ready": ready}
    labels = {"kubernetes.io/service-name": owner}
    return codec.decode(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "by-hand", "namespace": "one", "labels": labels},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [ip], "conditions": conditions} for ip in addresses],
            "ports": [{"name": "https", "port": 9443}],
        },
        BUILT_IN,
    )


@pytest.mark.parametrize(
    ("objects", "port", "addresses"),
    [
        ([service(), endpoints("127.0.0.1")], 443, [Address("127.0.0.1", 8443)]),
        ([service(), endpoints("127.0.0.1")], "https", [Address("127.0.0.1", 8443)]),
        ([service("NodePort"), endpoints("127.0.0.1")], 443, [Address("127.0.0.1", 8443)]),
        ([service("LoadBalancer"), endpoints("1.1.1.1")], 443, [Address("1.1.1.1", 8443)]),
        ([service(clusterIP="None"), endpoints("1.1.1.1")], 443, [Address("1.1.1.1", 8443)]),
        (
            [service(), endpoints("127.0.0.1", "127.0.0.2")],
            443,
            [Address("127.0.0.1", 8443), Address("127.0.0.2", 8443)],
        ),
        (
            [service(), on_nodes(node_1="1.1.1.1", gone="1.1.1.2"), SIMULATED],
            443,
            [Address("1.1.1.2", 8443)],
        ),
        ([service(), piece("127.0.0.3")], 443, [Address("127.0.0.3", 9443)]),
        ([service(), piece("127.0.0.3", ready=None)], 443, [Address("127.0.0.3", 9443)]),
        (
            [service("ExternalName", externalName="foo.bar.com", ports=None)],
            443,
            [Address("foo.bar.com", 443)],
        ),
    ],
)
def test_a_port_of_a_service_has_addresses(
    objects: list[KubeObject], port: int | str, addresses: list[Address]
) -> None:
    assert ServiceResolver(Objects(*objects)).resolve_all("one", "alfa", port) == addresses


@pytest.mark.parametrize(
    ("objects", "port", "words"),
    [
        ([service()], 443, 'no endpoints available for service "alfa"'),
        ([service(), endpoints("1.1.1.1", ready=False)], 443, "no endpoints available"),
        ([service(), endpoints("1.1.1.1", name="other")], 443, "no endpoints available"),
        ([service(), piece("1.1.1.1", ready=False)], 443, "no endpoints available"),
        ([service(), piece("1.1.1.1", owner="beta")], 443, "no endpoints available"),
        (
            [service(), on_nodes(node_1="1.1.1.1"), SIMULATED],
            443,
            'all endpoints of service "alfa" are on simulated nodes: nothing listens there',
        ),
        ([service(), endpoints("1.1.1.1")], 9999, 'no service port 9999 found for service "alfa"'),
    ],
)
def test_a_service_without_an_address_says_why(
    objects: list[KubeObject], port: int, words: str
) -> None:
    with pytest.raises(ServiceUnavailable, match=words):
        ServiceResolver(Objects(*objects)).resolve("one", "alfa", port)


def test_a_service_may_be_missing() -> None:
    with pytest.raises(errors.NotFound):
        ServiceResolver(Objects()).resolve("one", "alfa", 443)


def test_changes_are_seen() -> None:
    objects = Objects(service(), endpoints("127.0.0.1"))
    resolver = ServiceResolver(objects)
    assert resolver.resolve("one", "alfa", 443) == Address("127.0.0.1", 8443)
    objects.fill(service(), endpoints("127.0.0.2"))
    assert resolver.resolve("one", "alfa", 443) == Address("127.0.0.2", 8443)
