"""Which headers a request keeps when it is passed on to a server of somebody else, and which its
response keeps.

Who the client is, only this server may say. A client cannot send that itself, not under a name
that some servers read as the same, and not take it away by naming it in Connection. What belongs to
one connection, and the client's credentials, end here.

Source: net/http/httputil.ReverseProxy of Go 1.24, RFC 9110 and RFC 9113;
staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go,
staging/src/k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go and
staging/src/k8s.io/apiserver/pkg/endpoints/filters, Kubernetes 1.33. Departures: names that differ
from those of identity only in signs are dropped, too, and upgrades to h2c are not passed on: after
one, a client could send requests that nobody has looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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
_FRAMING = frozenset({b"content-length", b"expect"})  # what the transport writes itself
_FORWARDED = (b"x-forwarded-", b"host")  # what an API's server is told by this one only
_CORS = frozenset(
    b"access-control-allow-" + name for name in (b"credentials", b"headers", b"methods", b"origin")
)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_UNPRINTABLE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_BODILESS = (204, 304)
_IDENTITY = (b"authorization", b"impersonate-", b"x-remote-")  # the beginnings of their names
_SIGNS = re.compile(rb"[^a-z0-9]")
_PROTOCOLS = b"sec-websocket-protocol"
_TOKEN_PROTOCOL = b"base64url.bearer.authorization.k8s.io."
# What stays as it is in a query: all that is printable. A # would end it.
_QUERY = "".join(map(chr, range(0x21, 0x7F))).replace("#", "")


def forward_fields(fields: Iterable[tuple[bytes, bytes]]) -> Fields:
    """Returns the headers of a client's request that may be passed on, with names in lower case."""
    lowered = [(name.lower(), value) for name, value in fields]
    dropped = connection_fields(lowered) - _NEVER_NAMED
    kept = [(name, value) for name, value in lowered if name not in dropped]
    return list(_without_credentials(kept))


def fields_for_object(
    fields: Iterable[tuple[bytes, bytes]], peer: str, forwarded_uri: str
) -> Fields:
    """Returns the headers of a request that is passed on to a pod, a Service or a node.

    `peer` is the client's address, `forwarded_uri` the path that it asked for.
    """
    passed = _without_framing(fields)
    if not any(name == b"user-agent" for name, _ in passed):
        passed.append((b"user-agent", b""))
    passed = [pair for pair in passed if pair[0] != b"x-forwarded-uri"]
    passed.append((b"x-forwarded-uri", forwarded_uri.encode()))
    return [*_add_forwarded_for(passed, peer), (b"connection", b"close")]


def upgrade_for_object(fields: Sequence[tuple[bytes, bytes]], peer: str) -> Fields:
    """Returns the headers of an upgrade request that is passed on to a pod, a Service or a node."""
    return _add_forwarded_for([*_without_framing(fields), *upgrade_fields(fields)], peer)


def fields_for_api(fields: Iterable[tuple[bytes, bytes]], peer: str) -> Fields:
    """Returns the headers of a request that is passed on to the server of an API.

    `peer` is the client's address.
    """
    passed = _without_framing(fields)
    return _add_forwarded_for([one for one in passed if not one[0].startswith(_FORWARDED)], peer)


def response_fields(status: int, fields: Iterable[tuple[bytes, bytes]]) -> Fields:
    """Returns the headers of a response that is passed back, with names in lower case.

    Those that HTTP does not allow are left out.
    """
    lowered = [(name.lower(), value) for name, value in fields]
    chunked = any(name == b"transfer-encoding" for name, _ in lowered)
    dropped = _CORS | connection_fields(lowered)
    if chunked or status in _BODILESS:
        dropped |= {b"content-length"}
    return [
        (name, value)
        for name, value in lowered
        if name not in dropped and _NAME.fullmatch(name) and not _UNPRINTABLE.search(value)
    ]


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


def _without_framing(fields: Iterable[tuple[bytes, bytes]]) -> Fields:
    return [pair for pair in forward_fields(fields) if pair[0] not in _FRAMING]


def _add_forwarded_for(fields: Fields, peer: str) -> Fields:
    if not peer:
        return fields
    before = [value for name, value in fields if name == b"x-forwarded-for"]
    others = [pair for pair in fields if pair[0] != b"x-forwarded-for"]
    return [*others, (b"x-forwarded-for", b", ".join([*before, peer.encode()]))]


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
