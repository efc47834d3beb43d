"""Finds an address at which a Service answers, in the watch caches.

There is no kube-proxy, so a cluster IP leads nowhere: the address is one of a ready endpoint. The
endpoints are those of the Service's Endpoints, as Kubernetes 1.33 has it. A Service whose
EndpointSlices somebody has written by hand has no Endpoints; then they are the slices'. Those on
simulated nodes are left out: nothing listens there, and their addresses may be others' in the
network of this machine.

Source: staging/src/k8s.io/apiserver/pkg/util/proxy/proxy.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from kcm import errors
from kcm.api.core_v1 import Endpoints, Node, ObjectReference, Service
from kcm.api.core_v1.services import ServicePort
from kcm.api.discovery_v1 import EndpointSlice
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.caches import Caches
from kcm.helpers.pods import SERVICE_NAME

_MOST_KEPT = 1024  # services whose addresses are kept
_EXTERNAL_NAME = "ExternalName"
_BY_SERVICE = "service"


class ServiceUnavailable(errors.ApiError):
    """the service has no address that answers"""

    code = 503
    reason = "ServiceUnavailable"


@dataclass(frozen=True)
class Address:
    """Where a server listens: a name or an IP address, and a TCP port."""

    host: str
    port: int

    @property
    def netloc(self) -> str:
        """The host and the port, as a URL has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ServiceResolver:
    """Finds addresses of Services in the watch caches. Threads may share it."""

    def __init__(self, caches: Caches, rng: random.Random | None = None) -> None:
        self._caches = caches
        self._services = caches.cache(Service.resource)
        self._endpoints = caches.cache(Endpoints.resource)
        self._slices = caches.cache(EndpointSlice.resource)
        self._rng = rng or random.Random()
        self._seen: tuple[int, ...] = ()  # generations of the caches
        self._kept: dict[tuple[str, str, int | str], list[Address]] = {}

    def resolve(self, namespace: str, name: str, port: int | str) -> Address:
        """Returns one of the addresses of a Service's port, which is a number or a name.

        Raises NotFound for a Service that is missing, and ServiceUnavailable.
        """
        return self._rng.choice(self.resolve_all(namespace, name, port))

    def resolve_all(self, namespace: str, name: str, port: int | str) -> list[Address]:
        """Returns the addresses of a Service's port, at least one. Raises as `resolve`."""
        caches = (self._services, self._endpoints, self._slices)
        now = tuple(cache.generation for cache in caches)
        if now != self._seen or len(self._kept) > _MOST_KEPT:
            self._kept, self._seen = {}, now
        key = (namespace, name, port)
        addresses = self._kept.get(key)
        if addresses is None:
            addresses = self._find(namespace, name, port)
            self._kept[key] = addresses
        return addresses

    def _find(self, namespace: str, name: str, port: int | str) -> list[Address]:
        service = self._services.find(f"{namespace}/{name}")
        if service is None:
            raise errors.NotFound.of("services", name)
        if service.spec.type == _EXTERNAL_NAME and isinstance(port, int):
            return [Address(service.spec.external_name or "", port)]
        wanted = _find_port(service, port)
        found = find_endpoints(self._caches, namespace, name, wanted.name or "")
        if not found:
            raise ServiceUnavailable(f'no endpoints available for service "{name}"')
        return [Address(endpoint.host, endpoint.port) for endpoint in found]


def _find_port(service: Service, port: int | str) -> ServicePort:
    for candidate in service.spec.ports or ():
        if port in (candidate.port, candidate.name):
            return candidate
    raise ServiceUnavailable(f'no service port {port} found for service "{service.name}"')


# --- endpoints


@dataclass(frozen=True)
class ServiceEndpoint:
    """An address that is ready, and the object and the node that it belongs to, "" for none."""

    host: str
    port: int
    reference: ObjectReference | None
    node: str


def find_slices(caches: Caches, namespace: str, name: str) -> list[EndpointSlice]:
    """Returns the EndpointSlices of a Service, sorted by name."""
    cache = caches.cache(EndpointSlice.resource)
    found = cache.index(_BY_SERVICE, service_of).find(f"{namespace}/{name}")
    return [entry.obj for entry in found if isinstance(entry.obj, EndpointSlice)]


def service_of(piece: KubeObject) -> str:
    """Returns the key of the Service that an EndpointSlice belongs to."""
    return f"{piece.namespace}/{piece.labels.get(SERVICE_NAME, '')}"


def find_endpoints(
    caches: Caches, namespace: str, name: str, port_name: str
) -> list[ServiceEndpoint]:
    """Returns the ready addresses of a Service's port.

    Raises ServiceUnavailable if there are some, but all on simulated nodes.
    """
    found = list(_from_endpoints(caches, f"{namespace}/{name}", port_name))
    if not found:
        slices = find_slices(caches, namespace, name)
        found = [endpoint for piece in slices for endpoint in _ready_in(piece, port_name)]
    nodes = caches.cache(Node.resource)
    listening = [one for one in found if not _is_simulated(nodes.find(one.node))]
    if found and not listening:
        raise ServiceUnavailable(
            f'all endpoints of service "{name}" are on simulated nodes: nothing listens there'
        )
    return listening


def _is_simulated(node: Node | None) -> bool:
    return node is not None and SIMULATOR_LABEL in node.labels


def _from_endpoints(caches: Caches, key: str, port_name: str) -> Iterator[ServiceEndpoint]:
    endpoints = caches.cache(Endpoints.resource).find(key)
    if endpoints is None:
        return
    for subset in endpoints.subsets or ():
        for port in subset.ports or ():
            if (port.name or "") == port_name:
                for one in subset.addresses or ():
                    yield ServiceEndpoint(one.ip, port.port, one.target_ref, one.node_name or "")


def _ready_in(piece: EndpointSlice, port_name: str) -> Iterator[ServiceEndpoint]:
    for port in piece.ports or ():
        if (port.name or "") != port_name or not port.port:
            continue
        for endpoint in piece.endpoints or ():
            if endpoint.addresses and endpoint.conditions.ready is not False:
                yield ServiceEndpoint(
                    endpoint.addresses[0], port.port, endpoint.target_ref, endpoint.node_name or ""
                )
