"""Where the subresource `proxy` of a pod, a Service or a node leads.

An address must be one that a pod or a node may have. Loopback, link-local and multicast addresses
are refused, so that nobody reaches through the API server what listens on its machine alone. Only
the loopback addresses that kcm's own kubelets give to pods (127.64.0.0/10) are accepted. Nothing
listens on simulated nodes, whose addresses may be others' in the network of this machine.

Source: ResourceLocation in pkg/registry/core/pod/strategy.go, pkg/registry/core/service/storage and
pkg/registry/core/node/strategy.go; SplitSchemeNamePort in
staging/src/k8s.io/apimachinery/pkg/util/net/port_split.go; IsProxyableHostname in
pkg/proxy/util/utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address

from kcm import errors
from kcm.api.core_v1 import Endpoints, Node, Pod, Service
from kcm.api.discovery_v1 import EndpointSlice
from kcm.apimachinery.loopback import POD_NETWORK
from kcm.apiserver.cache.caches import Caches, FreshCaches
from kcm.apiserver.egress.kubelet import kubelet_of, preferred_address
from kcm.apiserver.egress.services import ServiceEndpoint, ServiceUnavailable, find_endpoints
from kcm.apiserver.egress.simulated import is_simulated
from kcm.http.reachable import require_global
from kcm.store import Store

_SCHEMES = ("", "http", "https")
_MOST_PORT = 65535
_OF_SERVICES = (Service, Endpoints, EndpointSlice, Pod)  # what decides where a Service leads
_rng = random.Random()  # which endpoint gets a request needs no secrecy


@dataclass(frozen=True)
class Target:
    """The URL of a server without a path. `token` is what it accepts, "" for none.

    `is_kubelet` says whether the server is a node's kubelet, whose certificate is checked. With
    `to_global`, its host must have a global address.
    """

    url: str
    token: str = ""
    is_kubelet: bool = False
    to_global: bool = False


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
    pod = store.get(Pod.resource, f"{namespace}/{asked.name}")
    ports = [port for container in pod.spec.containers for port in container.ports or ()]
    port = asked.port or (str(ports[0].container_port) if ports else "")
    if pod.spec.node_name:
        _require_real(store, pod.spec.node_name, f"pod {pod.name} is on")
    addresses = _addresses_of(pod)
    return _target(asked.scheme, addresses[0] if addresses else "", port)


def _addresses_of(pod: Pod) -> list[str]:
    listed = [one.ip for one in pod.status.pod_ips or () if one.ip]
    return listed or ([pod.status.pod_ip] if pod.status.pod_ip else [])


def find_service(caches: FreshCaches, namespace: str, name: str) -> Target:
    """Returns the target of services/proxy: one of the Service's ready pods, chosen at random.

    As upstream, an endpoint counts only if it names a pod of the same namespace that has this
    address. Everything is read from the watch caches, once they have what is stored now. Raises
    BadRequest, NotFound, ServiceUnavailable and StoreUnavailable.
    """
    asked = _split(name, "service")
    caches.wait_until_fresh(*(model.resource for model in _OF_SERVICES))
    service = caches.cache(Service.resource).find(f"{namespace}/{asked.name}")
    if service is None:
        raise errors.NotFound.of("services", asked.name)
    port_name = _port_name(service, asked.port)
    found = find_endpoints(caches, namespace, asked.name, port_name)
    _rng.shuffle(found)
    for endpoint in found:
        if _is_of_pod(caches, namespace, endpoint):
            return _target(asked.scheme, endpoint.host, str(endpoint.port))
    raise ServiceUnavailable(f'no endpoints available for service "{name}"')


def _port_name(service: Service, port: str) -> str:
    """Returns the name of the Service's port that a number stands for; names stay as they are."""
    if not port.isdigit():
        return port
    for candidate in service.spec.ports or ():
        if str(candidate.port) == port:
            return candidate.name or ""
    raise ServiceUnavailable(f'no service port {port} found for service "{service.name}"')


def _is_of_pod(caches: Caches, namespace: str, endpoint: ServiceEndpoint) -> bool:
    """Reports whether an endpoint names a pod of the namespace that has its address."""
    reference = endpoint.reference
    if reference is None or reference.namespace != namespace or not reference.name:
        return False
    entry = caches.cache(Pod.resource).get(f"{namespace}/{reference.name}")
    return (
        entry is not None
        and isinstance(entry.obj, Pod)
        and endpoint.host in _addresses_of(entry.obj)
    )


def find_node(store: Store, name: str, *, tls: bool | None) -> Target:
    """Returns the target of nodes/proxy: the node's kubelet, or another of the node's ports.

    `tls` says whether kubelets are reached over TLS, None that their nodes say so. Raises
    BadRequest, NotFound, KubeletUnreachable and ServiceUnavailable.
    """
    asked = _split(name, "node")
    _require_real(store, asked.name, "this is")
    kubelet = kubelet_of(store, asked.name, tls=tls)
    if asked.port in {"", kubelet.url.rpartition(":")[2]}:
        return Target(kubelet.url, kubelet.token, is_kubelet=True, to_global=kubelet.to_global)
    return _target(
        asked.scheme, preferred_address(store.get(Node.resource, asked.name)), asked.port
    )


def _require_real(store: Store, node: str, what: str) -> None:
    """Raises ServiceUnavailable for a simulated node. One that is missing is none."""
    with suppress(errors.NotFound):
        if is_simulated(store, node):
            raise ServiceUnavailable(
                f"error trying to reach service: {what} the simulated node {node}: nothing listens "
                "there"
            )


def _target(scheme_: str, address: str, port: str) -> Target:
    host = _require_proxyable(address)
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if port and not (is_number and 0 < int(port) <= _MOST_PORT):
        raise ServiceUnavailable(
            f"error trying to reach service: {errors.shorten(port)!r} is not a valid port"
        )
    shown = f"[{host}]" if host.version == 6 else str(host)
    target = Target(f"{scheme_ or 'http'}://{shown}")
    return replace(target, url=f"{target.url}:{port}") if port else target


def _require_proxyable(address: str) -> IPv4Address | IPv6Address:
    """Returns the address. Raises BadRequest unless a request may be passed on to it."""
    try:
        if (parsed := IPv4Address(address)) in POD_NETWORK:
            return parsed
    except ValueError:
        pass  # reported below, unless it is an address of IPv6
    return require_global(address)
