"""Which headers a proxied request and its response keep.

`kcm.apiserver.backends.forwarding` says what no server gets.

Source: net/http/httputil.ReverseProxy of Go 1.24;
staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go and
staging/src/k8s.io/apiserver/pkg/endpoints/filters, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kcm.apiserver.backends import forwarding
from kcm.apiserver.backends.streaming import Fields

_FRAMING = frozenset({"content-length", "expect"})
_CORS = frozenset(
    {
        "access-control-allow-credentials", "access-control-allow-headers",
        "access-control-allow-methods", "access-control-allow-origin",
    }
)  # fmt: skip

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_BODILESS = (204, 304)

RawFields = Sequence[tuple[bytes, bytes]]


def of_request(fields: RawFields, peer: str, forwarded_uri: str) -> list[tuple[str, str]]:
    """Returns the headers of a request that is passed on.

    `peer` is the client's address, `forwarded_uri` the path that it asked for.
    """
    passed = _forwarded(fields)
    if not any(name == "user-agent" for name, _ in passed):
        passed.append(("user-agent", ""))
    passed = [(name, value) for name, value in passed if name != "x-forwarded-uri"]
    passed.append(("x-forwarded-uri", forwarded_uri))
    return [*_forwarded_for(passed, peer), ("connection", "close")]


def of_upgrade(fields: RawFields, peer: str) -> list[tuple[str, str]]:
    """Returns the headers of an upgrade request that is passed on."""
    asked = _decode(forwarding.upgrade_fields(fields))
    return _forwarded_for([*_forwarded(fields), *asked], peer)


def of_response(status: int, fields: Fields) -> list[tuple[str, str]]:
    """Returns the headers of a response that is passed back, with names in lower case.

    Those that HTTP does not allow are left out.
    """
    lowered = [(name.lower(), value) for name, value in fields]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in lowered]
    hops = {name.decode("latin-1") for name in forwarding.connection_fields(raw)}
    chunked = any(name == "transfer-encoding" for name, _ in lowered)
    dropped = _CORS | hops | ({"content-length"} if chunked or status in _BODILESS else set())
    return [
        (name, value)
        for name, value in lowered
        if name not in dropped and _NAME.fullmatch(name) and not _UNPRINTABLE.search(value)
    ]


def _forwarded(fields: RawFields) -> list[tuple[str, str]]:
    kept = _decode(forwarding.forward_fields(fields))
    return [(name, value) for name, value in kept if name not in _FRAMING]


def _decode(fields: RawFields) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]


def _forwarded_for(fields: list[tuple[str, str]], peer: str) -> list[tuple[str, str]]:
    if not peer:
        return fields
    before = [value for name, value in fields if name == "x-forwarded-for"]
    others = [(name, value) for name, value in fields if name != "x-forwarded-for"]
    return [*others, ("x-forwarded-for", ", ".join([*before, peer]))]
