"""Where a node's kubelet is reached, and the requests to it.

Source: pkg/kubelet/client/kubelet_client.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

from kcm import errors
from kcm.api.core_v1 import Node
from kcm.helpers import node_token
from kcm.http import transport
from kcm.http.connections import Server
from kcm.http.faults import CallFailed
from kcm.http.fetching import Answer, fetch
from kcm.http.reachable import require_global
from kcm.http.transport import Call, Fields, Response, Upgraded, bearer, split_target
from kcm.store import Store

DEFAULT_PORT = 10250
# As kubeadm sets --kubelet-preferred-address-types: names of nodes may be unknown to DNS.
_PREFERRED = ("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname")
_MAX_PORT = 65535
_PLAIN = ((b"accept", b"*/*"), (b"connection", b"close"))
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")  # or an IPv4 address


class KubeletUnreachable(errors.ApiError):
    """The kubelet cannot be reached or does not respond."""


@dataclass(frozen=True)
class KubeletAddress:
    """The URL of a node's kubelet, and the token that it accepts, "" for none.

    With `to_global`, its host must have a global address.
    """

    url: str
    token: str = field(default="", repr=False)
    to_global: bool = True


def kubelet_of(store: Store, name: str, *, tls: bool | None) -> KubeletAddress:
    """Returns the address of a node's kubelet, see `locate_kubelet`. Raises NotFound as well."""
    return locate_kubelet(store.get(Node.resource, name), node_token.read_key(store), tls=tls)


def locate_kubelet(node: Node, key: bytes | None, *, tls: bool | None) -> KubeletAddress:
    """Returns the address of a node's kubelet. `key` is that of the cluster's tokens, if any.

    `tls` says whether it is reached over TLS; for None it is, unless the node's annotation says
    otherwise. Only a node that proves a loopback address to be its own is reached there. Raises
    BadRequest and KubeletUnreachable.
    """
    name, reachable = node.name, preferred_address(node)
    endpoints = node.status.daemon_endpoints
    endpoint = endpoints.kubelet_endpoint if endpoints else None
    port = (endpoint.port if endpoint else 0) or DEFAULT_PORT
    host = _host(name, reachable, port)
    token = node_token.derive_token(key, name, reachable, port) if key else ""
    if tls is None:
        tls = node.annotations.get(node_token.TLS_ANNOTATION) != "false"
    proof = node.annotations.get(node_token.PROOF_ANNOTATION, "")
    proven = key is not None and node_token.is_proven(key, proof, name, reachable, port)
    if not proven:
        _require_reachable(name, reachable)
    url = f"{'https' if tls else 'http'}://{host}:{port}"
    return KubeletAddress(url, token, to_global=not proven)


def _require_reachable(node: str, address: str) -> None:
    """Raises BadRequest, which says what to do, for an address that is not allowed.

    Names are resolved, and looked at, when the connection is made.
    """
    with suppress(ValueError):
        ip_address(address)
        try:
            require_global(address)
        except errors.BadRequest as error:
            raise errors.BadRequest(
                f"{error.message}: node {node} has {address}, which others cannot reach; start its "
                "kubelet with --node-ip"
            ) from None


def preferred_address(node: Node) -> str:
    """Returns the address at which a node is reached. Raises KubeletUnreachable without one."""
    addresses = [(address.type, address.address) for address in node.status.addresses or ()]
    reachable = next(
        (value for kind in _PREFERRED for type_, value in addresses if type_ == kind), ""
    )
    if not reachable:
        listed = " ".join(f"{{{kind} {value}}}" for kind, value in addresses)
        raise KubeletUnreachable(f"no preferred addresses found; known addresses: [{listed}]")
    return reachable


def _host(node: str, address: str, port: int) -> str:
    """Returns the address in the form that a URL needs. Raises BadRequest if it is not valid.

    It comes from the node's status, so it cannot be trusted.
    """
    if not 0 < port <= _MAX_PORT:
        raise errors.BadRequest(f"node {node}: port {port} of its kubelet is not valid")
    if _NAME.fullmatch(address):
        return address
    try:
        if "%" not in address:  # a zone id is valid on this machine only
            return f"[{IPv6Address(address)}]"
    except ValueError:
        pass  # reported below
    raise errors.BadRequest(f"node {node}: address {address!r} is not valid")


class KubeletClient:
    """Sends requests to kubelets.

    `tls` checks their certificates; without it, requests are sent over plain HTTP. With `mixed`,
    nodes that say they serve none are reached over plain HTTP.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, *, mixed: bool = False) -> None:
        self.context = tls
        self._mixed = mixed

    @property
    def tls(self) -> bool | None:
        """Whether kubelets are reached over TLS; None if that depends on the node."""
        return None if self._mixed else self.context is not None

    @asynccontextmanager
    async def get(self, where: KubeletAddress) -> AsyncIterator[Response]:
        """Sends a GET. The connection is closed when the context ends.

        Raises BadRequest and KubeletUnreachable.
        """
        with _naming(where):
            async with transport.send(*self._call(where, _PLAIN)) as response:
                yield response

    async def fetch(self, where: KubeletAddress, *, most: int) -> Answer:
        """Returns the whole response to a GET, whose body has at most `most` bytes. Raises as
        `get`.
        """
        with _naming(where):
            return await fetch(*self._call(where, _PLAIN), most=most)

    @asynccontextmanager
    async def upgrade(
        self, where: KubeletAddress, fields: Fields
    ) -> AsyncIterator[Upgraded | Response]:
        """Sends an upgrade request with the client's headers.

        Yields the upgraded connection, or the response if the kubelet declines. Raises BadRequest
        and KubeletUnreachable.
        """
        with _naming(where):
            async with transport.upgrade(*self._call(where, fields)) as response:
                yield response

    def _call(self, where: KubeletAddress, fields: Fields) -> tuple[Server, Call]:
        parts, target = split_target(where.url)
        server = Server.of(parts, self.context, to_global=where.to_global)
        return server, Call("GET", target, [*fields, *bearer(where.token)])


@contextmanager
def _naming(where: KubeletAddress) -> Iterator[None]:
    """Names the kubelet in the error. Raises KubeletUnreachable."""
    try:
        yield
    except CallFailed as error:
        raise KubeletUnreachable(f'Get "{where.url}": {error.message}') from None
