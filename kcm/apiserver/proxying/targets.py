"""Where the subresource `proxy` of a pod, a Service or a node leads.

An address must be one that a pod or a node may have. Loopback, link-local and multicast addresses
are refused, so that nobody reaches through the API server what listens on its machine alone. Only
the loopback addresses that kcm's own kubelets give to pods (127.64.0.0/10) are accepted.

Source: ResourceLocation in pkg/registry/core/pod/strategy.go, pkg/registry/core/service/storage and
pkg/registry/core/node/strategy.go; SplitSchemeNamePort in
staging/src/k8s.io/apimachinery/pkg/util/net/port_split.go; IsProxyableHostname in
pkg/proxy/util/utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Endpoints, Node, ObjectReference, Pod, Service
from kcm.api.discovery_v1 import EndpointSlice
from kcm.apimachinery.loopback import POD_NETWORK
from kcm.apiserver.backends.services import ServiceUnavailable
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.nodes.kubelet import kubelet_of, preferred_address
from kcm.store import Store

_SCHEMES = ("", "http", "https")
_MOST_PORT = 65535
_OF_SERVICE = "kubernetes.io/service-name"
_rng = random.Random()  # which endpoint gets a request needs no secrecy


@dataclass(frozen=True)
class Target:
    """The URL of a server without a path. `token` is what it accepts, "" for none.

    `is_kubelet` says whether the server is a node's kubelet, whose certificate is checked.
    """

    url: str
    token: str = ""
    is_kubelet: bool = False


@dataclass(frozen=True)
class _Name:
    """The name of an object as the path of a proxy request has it."""

    scheme: str
    name: str
    port: str


def _split(name: str, kind: str) -> _Name:
    """Reads `name`, `name:port` or `scheme:name:port`. Raises BadRequest."""
    parts = name.split(":")
    if len(parts) == 3:
        found = _Name(*parts)
    else:
        found = _Name("", parts[0], parts[1] if len(parts) == 2 else "")
    if len(parts) > 3 or not found.name or found.scheme not in _SCHEMES:
        raise errors.BadRequest(f'invalid {kind} request "{name}"')
    return found


def find_pod(store: Store, namespace: str, name: str) -> Target:
    """Returns the target of pods/proxy. Raises BadRequest, NotFound and ServiceUnavailable.

    Without a port in the name, it is the first port of the pod's containers.
    """
    asked = _split(name, "pod")
    pod = store.get_as(Pod, f"{namespace}/{asked.name}")
    ports = [port for container in pod.spec.containers for port in container.ports or ()]
    port = asked.port or (str(ports[0].container_port) if ports else "")
    addresses = _addresses_of(pod)
    return _target(asked.scheme, addresses[0] if addresses else "", port)


def _addresses_of(pod: Pod) -> list[str]:
    listed = [one.ip for one in pod.status.pod_ips or () if one.ip]
    return listed or ([pod.status.pod_ip] if pod.status.pod_ip else [])


def find_service(store: Store, caches: Caches, namespace: str, name: str) -> Target:
    """Returns the target of services/proxy: one of the Service's ready pods, chosen at random.

    As upstream, an endpoint counts only if it names a pod of the same namespace that has this
    address. Raises BadRequest, NotFound and ServiceUnavailable.
    """
    asked = _split(name, "service")
    service = store.get_as(Service, f"{namespace}/{asked.name}")
    port_name = _port_name(service, asked.port)
    found = list(_from_endpoints(store, service, port_name))
    found = found or list(_from_slices(caches, service, port_name))
    _rng.shuffle(found)
    for endpoint in found:
        if endpoint.is_of_pod(store, namespace):
            return _target(asked.scheme, endpoint.address, str(endpoint.port))
    raise ServiceUnavailable(f'no endpoints available for service "{name}"')


def _port_name(service: Service, port: str) -> str:
    """Returns the name of the Service's port that a number stands for; names stay as they are."""
    if not port.isdigit():
        return port
    for candidate in service.spec.ports or ():
        if str(candidate.port) == port:
            return candidate.name or ""
    raise ServiceUnavailable(f'no service port {port} found for service "{service.name}"')


@dataclass(frozen=True)
class _Endpoint:
    address: str
    port: int
    reference: ObjectReference | None

    def is_of_pod(self, store: Store, namespace: str) -> bool:
        """Reports whether the endpoint names a pod of the namespace that has its address."""
        reference = self.reference
        if reference is None or reference.namespace != namespace or not reference.name:
            return False
        try:
            pod = store.get_as(Pod, f"{namespace}/{reference.name}")
        except errors.NotFound:
            return False
        return self.address in _addresses_of(pod)


def _from_endpoints(store: Store, service: Service, port_name: str) -> Iterator[_Endpoint]:
    try:
        endpoints = store.get_as(Endpoints, service.key)
    except errors.NotFound:
        return
    for subset in endpoints.subsets or ():
        for port in subset.ports or ():
            if (port.name or "") == port_name:
                for address in subset.addresses or ():
                    yield _Endpoint(address.ip, port.port, address.target_ref)


def _from_slices(caches: Caches, service: Service, port_name: str) -> Iterator[_Endpoint]:
    for entry in caches.cache(scheme.resource_of(EndpointSlice)).entries(service.namespace):
        piece = entry.obj
        assert isinstance(piece, EndpointSlice)
        if piece.labels.get(_OF_SERVICE) != service.name:
            continue
        for port in piece.ports or ():
            if (port.name or "") != port_name or not port.port:
                continue
            for endpoint in piece.endpoints or ():
                if endpoint.addresses and endpoint.conditions.ready is not False:
                    yield _Endpoint(endpoint.addresses[0], port.port, endpoint.target_ref)


def find_node(store: Store, name: str, *, tls: bool | None) -> Target:
    """Returns the target of nodes/proxy: the node's kubelet, or another of the node's ports.

    `tls` says whether kubelets are reached over TLS, None that their nodes say so. Raises
    BadRequest, NotFound and KubeletUnreachable.
    """
    asked = _split(name, "node")
    kubelet = kubelet_of(store, asked.name, tls=tls)
    if asked.port in {"", kubelet.url.rpartition(":")[2]}:
        return Target(kubelet.url, kubelet.token, is_kubelet=True)
    return _target(asked.scheme, preferred_address(store.get_as(Node, asked.name)), asked.port)


def _target(scheme_: str, address: str, port: str) -> Target:
    host = _proxyable(address)
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if port and not (is_number and 0 < int(port) <= _MOST_PORT):
        raise ServiceUnavailable(f"error trying to reach service: {port!r} is not a valid port")
    shown = f"[{host}]" if host.version == 6 else str(host)
    target = Target(f"{scheme_ or 'http'}://{shown}")
    return replace(target, url=f"{target.url}:{port}") if port else target


def _proxyable(address: str) -> IPv4Address | IPv6Address:
    """Returns the address. Raises BadRequest unless a request may be passed on to it."""
    try:
        parsed = ip_address(address)
    except ValueError:
        raise errors.BadRequest("address not allowed") from None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    real = mapped or parsed
    if isinstance(real, IPv4Address) and real in POD_NETWORK:
        return real
    is_global = not (
        real.is_loopback
        or real.is_link_local
        or real.is_multicast
        or real.is_unspecified
        or str(real) == "255.255.255.255"
        or (isinstance(real, IPv6Address) and real.scope_id is not None)
    )
    if not is_global:
        raise errors.BadRequest("address not allowed")
    return real
