"""What a request keeps when it is passed on to a server of somebody else.

Who the client is, only this server may say. A client cannot send that itself, not under a name
that some servers read as the same, and not take it away by naming it in Connection. What belongs to
one connection, and the client's credentials, end here.

Source: net/http/httputil.ReverseProxy of Go 1.24, RFC 9110 and RFC 9113;
staging/src/k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go and
staging/src/k8s.io/apiserver/pkg/endpoints/filters, Kubernetes 1.33. Departures: names that differ
from those of identity only in signs are dropped, too, and upgrades to h2c are not passed on: after
one, a client could send requests that nobody has looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

Fields = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection", b"proxy-connection", b"keep-alive", b"proxy-authenticate",
        b"proxy-authorization", b"te", b"trailer", b"transfer-encoding", b"upgrade",
        b"http2-settings",
    }
)  # fmt: skip
# Where the request goes and how long it is: no options of a connection, whatever a client says.
_NEVER_NAMED = frozenset({b"host", b"content-length"})
_IDENTITY = (b"authorization", b"impersonate-", b"x-remote-")  # the beginnings of their names
_SIGNS = re.compile(rb"[^a-z0-9]")
_PROTOCOLS = b"sec-websocket-protocol"
_TOKEN_PROTOCOL = b"base64url.bearer.authorization.k8s.io."
# What stays as it is in a query: all that is printable. A # would end it.
_QUERY = "".join(map(chr, range(0x21, 0x7F))).replace("#", "")


def forward_fields(fields: Iterable[tuple[bytes, bytes]]) -> Fields:
    """Returns the headers of a client's request that may be passed on, with names in lower case."""
    known = [(name.lower(), value) for name, value in fields]
    dropped = connection_fields(known) - _NEVER_NAMED
    kept = [(name, value) for name, value in known if name not in dropped]
    return list(_without_credentials(kept))


def upgrade_fields(fields: Iterable[tuple[bytes, bytes]]) -> Fields:
    """Returns the headers that ask for the upgrade that the client has asked for."""
    asked = _values(fields, b"upgrade")
    return [(b"connection", b"Upgrade"), (b"upgrade", b", ".join(asked))]


def is_http2_upgrade(fields: Iterable[tuple[bytes, bytes]]) -> bool:
    """Reports whether a client asks for HTTP/2 on its connection."""
    return any(value.lower().startswith(b"h2c") for value in _values(fields, b"upgrade"))


def connection_fields(fields: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Returns the names of headers that are about one connection only, those included that
    Connection names, in lower case.
    """
    return _HOP_BY_HOP.union(word.lower() for word in _values(fields, b"connection"))


def quote_query(query: bytes) -> str:
    """Returns a query as it may stand in a request: as it came, but for bytes that may not."""
    return quote(query, safe=_QUERY)


def _values(fields: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[bytes]:
    """Returns what a header lists."""
    return [
        word.strip()
        for name, value in fields
        if name.lower() == wanted
        for word in value.split(b",")
        if word.strip()
    ]


def _without_credentials(fields: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in fields:
        # Many servers turn signs into underscores before they look for a header.
        if _SIGNS.sub(b"-", name).startswith(_IDENTITY):
            continue
        if name == _PROTOCOLS:
            offered = [word.strip() for word in value.split(b",")]
            kept = b", ".join(word for word in offered if not word.startswith(_TOKEN_PROTOCOL))
            if kept:
                yield name, kept
        else:
            yield name, value
