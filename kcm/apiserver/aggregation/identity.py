"""How a request for another server says who sends it: by headers, and a client certificate.

The server trusts the headers because the certificate is signed by the front proxy's authority.

Source: staging/src/k8s.io/client-go/transport/round_trippers.go (SetAuthProxyHeaders),
staging/src/k8s.io/apimachinery/pkg/util/proxy and net/http/httputil of Go 1.24, Kubernetes 1.33.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kcm.apiserver.auth.users import MASTERS, User

USER, UID, GROUP, EXTRA = "X-Remote-User", "X-Remote-Uid", "X-Remote-Group", "X-Remote-Extra-"
AGGREGATOR = User("system:kube-aggregator", groups=(MASTERS,))  # asks for discovery
OPENAPI_AGGREGATOR = User("system:aggregator")

Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection", b"proxy-connection", b"keep-alive", b"proxy-authenticate",
        b"proxy-authorization", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect",
    }
)  # fmt: skip
# What says who the client is, which only this server may say. Authorization ends here.
_OF_CLIENTS = (b"authorization", b"impersonate-", b"x-remote-", b"x-forwarded-", b"host")
_CORS = frozenset(
    f"access-control-allow-{name}".encode() for name in ("credentials", "headers", "methods",
                                                         "origin")
)  # fmt: skip
# The bytes of a header's name, as RFC 7230 has them, but %, by which others are written.
_NAME_BYTES = frozenset((string.ascii_letters + string.digits + "!#$&'*+-.^_`|~").encode())


@dataclass(frozen=True)
class ProxyIdentity:
    """The files of the front proxy's client certificate and of its key, None for none."""

    certificate: Path | None = None
    key: Path | None = None


def identify(user: User) -> Headers:
    """Returns the headers that say who the user is."""
    pairs = [(USER, user.name)]
    if user.uid:
        pairs.append((UID, user.uid))
    pairs += [(GROUP, group) for group in user.groups]
    pairs += [
        (EXTRA + escape_header_key(name), value) for name, values in user.extra for value in values
    ]
    return [(name.encode(), _clean(value)) for name, value in pairs]


def escape_header_key(name: str) -> str:
    """Returns a name of an extra attribute as it may stand in a header's name."""
    return "".join(chr(byte) if byte in _NAME_BYTES else f"%{byte:02X}" for byte in name.encode())


def _clean(value: str) -> bytes:
    """Returns a header's value, without what would end the header."""
    return " ".join(value.split()).encode() if not value.isprintable() else value.strip().encode()


def forward_request_headers(fields: Iterable[tuple[bytes, bytes]], client: str) -> Headers:
    """Returns the headers of a client's request that may be passed on.

    `client` is the client's address.
    """
    known = list(fields)
    named = _named_by_connection(known)
    passed = [
        (name, value)
        for name, value in known
        if name not in _HOP_BY_HOP and name not in named and not name.startswith(_OF_CLIENTS)
    ]
    return [*passed, (b"x-forwarded-for", client.encode())] if client else passed


def forward_upgrade_headers(fields: Iterable[tuple[bytes, bytes]], client: str) -> Headers:
    """Returns the headers of a client's request for an upgrade that may be passed on."""
    known = list(fields)
    kept = [(name, value) for name, value in known if name in (b"connection", b"upgrade")]
    return forward_request_headers(known, client) + kept


def forward_response_headers(fields: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Returns the headers of a server's response that may be passed on, in lower case."""
    lower = [(name.lower(), value) for name, value in fields]
    named = _named_by_connection(lower)
    return [
        (name, value)
        for name, value in lower
        if name not in _HOP_BY_HOP and name not in named and name not in _CORS
    ]


def _named_by_connection(fields: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Returns the headers that are about one connection only because Connection names them."""
    return frozenset(
        word.strip().lower()
        for name, value in fields
        if name == b"connection"
        for word in value.split(b",")
    )
