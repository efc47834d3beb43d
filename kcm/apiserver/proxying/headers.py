"""Which headers a proxied request and its response keep.

Headers that belong to one connection are dropped, as RFC 9110 asks for, and the client's
credentials stay here.

Source: net/http/httputil.ReverseProxy of Go 1.24;
staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go and
staging/src/k8s.io/apiserver/pkg/endpoints/filters, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kcm.apiserver.backends.streaming import Fields

_HOP_BY_HOP = frozenset(
    {
        "connection", "proxy-connection", "keep-alive", "proxy-authenticate",
        "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_FRAMING = frozenset({"content-length", "expect", "transfer-encoding"})
_CREDENTIALS = ("authorization", "impersonate-", "x-remote-")  # the beginnings of their names
_CORS = frozenset(
    {
        "access-control-allow-credentials", "access-control-allow-headers",
        "access-control-allow-methods", "access-control-allow-origin",
    }
)  # fmt: skip
_TOKEN_PROTOCOL = "base64url.bearer.authorization.k8s.io."

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_BODILESS = (204, 304)

RawFields = Sequence[tuple[bytes, bytes]]


def of_request(fields: RawFields, peer: str, forwarded_uri: str) -> list[tuple[str, str]]:
    """Returns the headers of a request that is passed on.

    `peer` is the client's address, `forwarded_uri` the path that it asked for.
    """
    kept = _without_hops(_decode(fields))
    passed = [(name, value) for name, value in kept if name not in _FRAMING]
    passed = list(_without_credentials(passed))
    if not any(name == "user-agent" for name, _ in passed):
        passed.append(("user-agent", ""))
    passed = [(name, value) for name, value in passed if name != "x-forwarded-uri"]
    passed.append(("x-forwarded-uri", forwarded_uri))
    return [*_forwarded_for(passed, peer), ("connection", "close")]


def of_upgrade(fields: RawFields, peer: str) -> list[tuple[str, str]]:
    """Returns the headers of an upgrade request that is passed on."""
    kept = [(name, value) for name, value in _decode(fields) if name not in _FRAMING]
    return _forwarded_for(list(_without_credentials(kept)), peer)


def of_response(status: int, fields: Fields) -> list[tuple[str, str]]:
    """Returns the headers of a response that is passed back, with names in lower case.

    Those that HTTP does not allow are left out.
    """
    lowered = [(name.lower(), value) for name, value in fields]
    chunked = any(name == "transfer-encoding" for name, _ in lowered)
    dropped = _CORS | ({"content-length"} if chunked or status in _BODILESS else set())
    return [
        (name, value)
        for name, value in _without_hops(lowered)
        if name not in dropped and _NAME.fullmatch(name) and not _UNPRINTABLE.search(value)
    ]


def _decode(fields: RawFields) -> list[tuple[str, str]]:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in fields]


def _without_hops(fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    known = list(fields)
    named = {
        option.strip().lower()
        for name, value in known
        if name == "connection"
        for option in value.split(",")
    }
    return [(n, v) for n, v in known if n not in _HOP_BY_HOP and n not in named]


def _without_credentials(fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, value in fields:
        if name.startswith(_CREDENTIALS):
            continue
        if name == "sec-websocket-protocol":
            offered = [word.strip() for word in value.split(",")]
            kept = ", ".join(word for word in offered if not word.startswith(_TOKEN_PROTOCOL))
            if kept:
                yield name, kept
        else:
            yield name, value


def _forwarded_for(fields: list[tuple[str, str]], peer: str) -> list[tuple[str, str]]:
    if not peer:
        return fields
    before = [value for name, value in fields if name == "x-forwarded-for"]
    others = [(name, value) for name, value in fields if name != "x-forwarded-for"]
    return [*others, ("x-forwarded-for", ", ".join([*before, peer]))]
