"""The addresses behind a Service, from the watch caches.

They are those of its Endpoints, as Kubernetes 1.33 has it. A Service whose EndpointSlices somebody
has written by hand has no Endpoints; then it is the slices' addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kcm.api.core_v1 import Endpoints, ObjectReference
from kcm.api.discovery_v1 import EndpointSlice
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.caches import Caches
from kcm.helpers.service_pods import SERVICE_NAME

_BY_SERVICE = "service"


@dataclass(frozen=True)
class ServiceEndpoint:
    """An address that is ready, and the object that it belongs to."""

    host: str
    port: int
    reference: ObjectReference | None


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
    """Returns the ready addresses of a Service's port."""
    found = list(_from_endpoints(caches, f"{namespace}/{name}", port_name))
    if found:
        return found
    slices = find_slices(caches, namespace, name)
    return [endpoint for piece in slices for endpoint in _ready_in(piece, port_name)]


def _from_endpoints(caches: Caches, key: str, port_name: str) -> Iterator[ServiceEndpoint]:
    endpoints = caches.cache(Endpoints.resource).find(key)
    if endpoints is None:
        return
    for subset in endpoints.subsets or ():
        for port in subset.ports or ():
            if (port.name or "") == port_name:
                for one in subset.addresses or ():
                    yield ServiceEndpoint(one.ip, port.port, one.target_ref)


def _ready_in(piece: EndpointSlice, port_name: str) -> Iterator[ServiceEndpoint]:
    for port in piece.ports or ():
        if (port.name or "") != port_name or not port.port:
            continue
        for endpoint in piece.endpoints or ():
            if endpoint.addresses and endpoint.conditions.ready is not False:
                yield ServiceEndpoint(endpoint.addresses[0], port.port, endpoint.target_ref)
