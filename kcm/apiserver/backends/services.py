"""Finds an address at which a Service answers.

There is no kube-proxy, so a cluster IP leads nowhere: the address is that of a ready endpoint.

Source: staging/src/k8s.io/apiserver/pkg/util/proxy/proxy.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Endpoints, Service
from kcm.api.core_v1.services import ServicePort
from kcm.api.discovery_v1 import EndpointSlice
from kcm.apiserver.cache.caches import Caches

_OF_SERVICE = "kubernetes.io/service-name"
_MOST_KEPT = 1024  # services whose addresses are kept
_EXTERNAL_NAME = "ExternalName"


class ServiceUnavailable(errors.ApiError):
    """the service has no address that answers"""

    code = 503
    reason = "ServiceUnavailable"


@dataclass(frozen=True)
class Address:
    """Where a server listens: a name or an IP address, and a TCP port."""

    host: str
    port: int


class ServiceResolver:
    """Finds addresses of Services in the watch caches. Threads may share it."""

    def __init__(self, caches: Caches, rng: random.Random | None = None) -> None:
        self._services = caches.cache(scheme.resource_of(Service))
        self._endpoints = caches.cache(scheme.resource_of(Endpoints))
        self._slices = caches.cache(scheme.resource_of(EndpointSlice))
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
        entry = self._services.get(f"{namespace}/{name}")
        if entry is None:
            raise errors.NotFound.of("services", name)
        service = entry.obj
        assert isinstance(service, Service)
        if service.spec.type == _EXTERNAL_NAME and isinstance(port, int):
            return [Address(service.spec.external_name or "", port)]
        wanted = _find_port(service, port)
        port_name = wanted.name or ""
        addresses = list(self._from_endpoints(namespace, name, port_name))
        if not addresses:
            addresses = list(self._from_slices(namespace, name, port_name))
        if not addresses:
            raise ServiceUnavailable(f'no endpoints available for service "{name}"')
        return addresses

    def _from_endpoints(self, namespace: str, name: str, port_name: str) -> Iterator[Address]:
        entry = self._endpoints.get(f"{namespace}/{name}")
        if entry is None:
            return
        assert isinstance(entry.obj, Endpoints)
        for subset in entry.obj.subsets or ():
            for port in subset.ports or ():
                if (port.name or "") == port_name:
                    yield from (Address(one.ip, port.port) for one in subset.addresses or ())

    def _from_slices(self, namespace: str, name: str, port_name: str) -> Iterator[Address]:
        """Yields what the Service's EndpointSlices name, which no Endpoints do if somebody has
        written them by hand. Their names say nothing, so all of the namespace are looked at.
        """
        for entry in self._slices.entries(namespace):
            piece = entry.obj
            assert isinstance(piece, EndpointSlice)
            if piece.labels.get(_OF_SERVICE) == name:
                yield from _ready_in(piece, port_name)


def _find_port(service: Service, port: int | str) -> ServicePort:
    for candidate in service.spec.ports or ():
        if port in (candidate.port, candidate.name):
            return candidate
    raise ServiceUnavailable(f'no service port {port} found for service "{service.name}"')


def _ready_in(piece: EndpointSlice, port_name: str) -> Iterator[Address]:
    for port in piece.ports or ():
        if (port.name or "") != port_name or not port.port:
            continue
        for endpoint in piece.endpoints or ():
            if endpoint.addresses and endpoint.conditions.ready is not False:
                yield Address(endpoint.addresses[0], port.port)
