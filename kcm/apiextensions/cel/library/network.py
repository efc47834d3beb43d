"""The functions for IP addresses, ranges of them, and URLs.

Source: staging/src/k8s.io/apiserver/pkg/cel/library/{ip,cidr,urls}.go, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from kcm.apiextensions.cel.library.tagged import CIDR, IP, URL, is_tagged, tag, untag

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATH_SAFE = "/:@!$&'()*+,;=~-._%"  # what Go leaves alone in a path


# --- addresses


def ip(value: Any) -> dict[str, Any]:
    """Returns the address of a text, or the address of a range (`cidr(...).ip()`)."""
    if is_tagged(value, CIDR):
        return tag(IP, str(untag(value, CIDR)).partition("/")[0])
    return tag(IP, str(_parse_ip(value)))


def _parse_ip(text: Any) -> _Address:
    if not isinstance(text, str) or "%" in text:
        raise ValueError(f'IP Address "{text}" with zone value is not allowed')
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f'IP Address "{text}" parse error during conversion') from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def is_ip(value: Any) -> bool:
    try:
        _parse_ip(value)
    except ValueError:
        return False
    return True


def is_canonical(text: str) -> bool:
    return str(_parse_ip(text)) == text


def _address(value: Any) -> _Address:
    return ipaddress.ip_address(str(untag(value, IP)))


def family(value: Any) -> int:
    return _address(value).version


def is_unspecified(value: Any) -> bool:
    return _address(value).is_unspecified


def is_loopback(value: Any) -> bool:
    return _address(value).is_loopback


def is_link_local_unicast(value: Any) -> bool:
    return _address(value).is_link_local


def is_link_local_multicast(value: Any) -> bool:
    address = _address(value)
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.is_multicast and (int(address) >> 112) & 0xF == 2


def is_global_unicast(value: Any) -> bool:
    address = _address(value)
    is_broadcast = int(address) == 2**32 - 1 and address.version == 4
    return not (
        is_broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


# --- ranges


def cidr(text: str) -> dict[str, Any]:
    return tag(CIDR, _parse_cidr(text))


def _parse_cidr(text: str) -> str:
    address, slash, length = text.partition("/")
    is_number = length.isascii() and length.isdigit() and (length == "0" or length[0] != "0")
    if not (slash and is_number):
        raise ValueError(f'CIDR "{text}" parse error during conversion')
    parsed = _parse_ip(address)
    if int(length) > parsed.max_prefixlen:
        raise ValueError(f'CIDR "{text}" parse error during conversion')
    return f"{parsed}/{length}"


def is_cidr(text: str) -> bool:
    try:
        _parse_cidr(text)
    except ValueError:
        return False
    return True


def _network(value: Any) -> _Network:
    return ipaddress.ip_network(str(untag(value, CIDR)), strict=False)


def contains_ip(value: Any, other: Any) -> bool:
    address = _parse_ip(other) if isinstance(other, str) else _address(other)
    return address in _network(value)


def contains_cidr(value: Any, other: Any) -> bool:
    outer, inner = _network(value), _network(cidr(other) if isinstance(other, str) else other)
    if outer.version != inner.version:
        return False
    return inner.prefixlen >= outer.prefixlen and inner.network_address in outer


def prefix_length(value: Any) -> int:
    return _network(value).prefixlen


def masked(value: Any) -> dict[str, Any]:
    return tag(CIDR, str(_network(value)))


def to_text(value: Any) -> str:
    """Returns the text of an address or a range, which `string()` gives."""
    return str(untag(value, IP, CIDR))


# --- URLs


def url(text: str) -> dict[str, Any]:
    _parse_url(text)
    return tag(URL, text)


def is_url(text: str) -> bool:
    try:
        _parse_url(text)
    except ValueError:
        return False
    return True


def _parse_url(text: str) -> SplitResult:
    """Parses as Go's ParseRequestURI does: an absolute URI, or an absolute path."""
    has_controls = any(char < " " or char == "\x7f" for char in text)
    if has_controls or not (text.startswith("/") or _SCHEME.match(text)):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}"')
    parts = urlsplit(text)
    _ = parts.port  # raises ValueError for a port that is no number
    return parts


def _url(value: Any) -> SplitResult:
    return _parse_url(str(untag(value, URL)))


def get_scheme(value: Any) -> str:
    return _url(value).scheme


def get_host(value: Any) -> str:
    return _url(value).netloc.rpartition("@")[2]


def get_hostname(value: Any) -> str:
    host = get_host(value)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def get_port(value: Any) -> str:
    port = _url(value).port
    return "" if port is None else str(port)


def get_escaped_path(value: Any) -> str:
    return quote(_url(value).path, safe=_PATH_SAFE)


def get_query(value: Any) -> dict[str, list[str]]:
    return parse_qs(_url(value).query, keep_blank_values=True)
