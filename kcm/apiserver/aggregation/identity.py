"""How a request for another server says who sends it: by headers, and a client certificate.

The server trusts the headers because the certificate is signed by the front proxy's authority.

Source: staging/src/k8s.io/client-go/transport/round_trippers.go (SetAuthProxyHeaders),
staging/src/k8s.io/apimachinery/pkg/util/proxy and net/http/httputil of Go 1.24, Kubernetes 1.33.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kcm import errors
from kcm.apiserver.auth.users import MASTERS, User
from kcm.apiserver.backends import forwarding

USER, UID, GROUP, EXTRA = "X-Remote-User", "X-Remote-Uid", "X-Remote-Group", "X-Remote-Extra-"
AGGREGATOR = User("system:kube-aggregator", groups=(MASTERS,))  # asks for discovery
OPENAPI_AGGREGATOR = User("system:aggregator")

Headers = list[tuple[bytes, bytes]]

# What the server gets from here, or not at all.
_OURS = (b"x-forwarded-", b"host", b"expect")
_CORS = frozenset(
    f"access-control-allow-{name}".encode() for name in ("credentials", "headers", "methods",
                                                         "origin")
)  # fmt: skip
# The bytes of a header's name, as RFC 7230 has them, but %, by which others are written.
_NAME_BYTES = frozenset((string.ascii_letters + string.digits + "!#$&'*+-.^_`|~").encode())


_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class ProxyIdentity:
    """The files of the front proxy's client certificate and of its key, None for none."""

    certificate: Path | None = None
    key: Path | None = None


class NoHeader(errors.KcmError):
    """A header cannot have this value."""


def identify(user: User) -> Headers:
    """Returns the headers that say who the user is.

    Raises NoHeader for a name that a server would read as another one.
    """
    pairs = [(USER, user.name)]
    if user.uid:
        pairs.append((UID, user.uid))
    pairs += [(GROUP, group) for group in user.groups]
    pairs += [
        (EXTRA + escape_header_key(name), value) for name, values in user.extra for value in values
    ]
    return [(name.encode(), _encode(name, value)) for name, value in pairs]


def escape_header_key(name: str) -> str:
    """Returns a name of an extra attribute as it may stand in a header's name."""
    return "".join(chr(byte) if byte in _NAME_BYTES else f"%{byte:02X}" for byte in name.encode())


def _encode(name: str, value: str) -> bytes:
    """Returns the bytes of a header's value. Servers drop spaces around it."""
    if _CONTROLS.search(value) or value != value.strip():
        raise NoHeader(f'net/http: invalid header field value for "{name}"')
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise NoHeader(f'net/http: invalid header field value for "{name}"') from None


def forward_request_headers(fields: Iterable[tuple[bytes, bytes]], client: str) -> Headers:
    """Returns the headers of a client's request that may be passed on.

    `client` is the client's address.
    """
    passed = [pair for pair in forwarding.forward_fields(fields) if not pair[0].startswith(_OURS)]
    return [*passed, (b"x-forwarded-for", client.encode())] if client else passed


def forward_upgrade_headers(fields: Iterable[tuple[bytes, bytes]], client: str) -> Headers:
    """Returns the headers of a client's request for an upgrade that may be passed on."""
    known = list(fields)
    return forward_request_headers(known, client) + forwarding.upgrade_fields(known)


def forward_response_headers(fields: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Returns the headers of a server's response that may be passed on, in lower case."""
    lower = [(name.lower(), value) for name, value in fields]
    dropped = forwarding.connection_fields(lower) | _CORS
    return [(name, value) for name, value in lower if name not in dropped]
