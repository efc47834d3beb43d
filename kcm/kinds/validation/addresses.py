"""Validation of IP addresses and ranges.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/ip.go and
pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from kcm.apimachinery.field_errors import Faults, invalid
from kcm.apimachinery.loopback import is_given_to_pods

_NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_HOST_BITS = "must not have bits set beyond the prefix length"
_FAMILIES = {"IPv4": IPv4Address, "IPv6": IPv6Address}
_LEADING_ZEROS = re.compile(r"(?<![\d:a-fA-F])0+(?=\d)")


def parse(text: str) -> IPv4Address | IPv6Address | None:
    """Returns the IP address in a text, or None. An address with a zone (`%eth0`) is not valid."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def address(text: str, path: str, stored: Collection[str] = ()) -> Faults:
    """Checks an address. One of those that the object has already is accepted as it is."""
    if text in stored:
        return []
    ip = parse(text)
    if ip is None:
        zeros = parse(_LEADING_ZEROS.sub("", text)) is not None
        return [invalid(path, text, "must not have leading 0s" if zeros else _NOT_AN_IP)]
    if _is_mapped(ip):
        return [invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    return []


def _is_mapped(ip: IPv4Address | IPv6Address) -> bool:
    return isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None


def of_family(text: str, family: str, path: str) -> Faults:
    """Checks an address of the family `IPv4` or `IPv6`."""
    if isinstance(parse(text), _FAMILIES[family]):
        return []
    return [invalid(path, text, f"must be an {family} address")]


def of_endpoint(text: str, path: str) -> Faults:
    """Checks an address of an endpoint.

    It is checked as by `not_special`, but the loopback addresses that the process runtime gives to
    pods are allowed. Upstream has no such pods and rejects these addresses.
    """
    ip = parse(text)
    if ip is not None and is_given_to_pods(ip):
        return []
    return not_special(text, path)


def not_special(text: str, path: str) -> Faults:
    """Checks that an address is neither unspecified, nor loopback, nor link-local."""
    ip = parse(text) or parse(_LEADING_ZEROS.sub("", text))
    if ip is None:
        return [invalid(path, text, "must be a valid IP address")]
    special = {
        f"unspecified ({text})": ip.is_unspecified,
        "in the loopback range (127.0.0.0/8, ::1/128)": ip.is_loopback,
        "in the link-local range (169.254.0.0/16, fe80::/10)": ip.is_link_local,
        "in the link-local multicast range (224.0.0.0/24, ff02::/10)": _is_local_multicast(ip),
    }
    return [invalid(path, text, f"may not be {what}") for what, is_so in special.items() if is_so]


_MULTICAST = {4: ip_network("224.0.0.0/24"), 6: ip_network("ff02::/16")}


def _is_local_multicast(ip: IPv4Address | IPv6Address) -> bool:
    return ip in _MULTICAST[ip.version]


def cidr(text: str, path: str, stored: Collection[str] = ()) -> Faults:
    """Checks a range. One of those that the object has already is accepted as it is."""
    if text in stored:
        return []
    why = _range_fault(text)
    return [invalid(path, text, why)] if why else []


def canonical_cidr(text: str, path: str) -> Faults:
    """Checks a range, which must be written as its value is formatted."""
    faults = cidr(text, path)
    if faults or (form := str(ip_network(text))) == text:
        return faults
    return [invalid(path, text, f'must be in canonical form ("{form}")')]


def parse_cidr(text: str) -> IPv4Network | IPv6Network | None:
    """Returns the range in a text, which may have leading zeros and bits beyond its prefix, or
    None.
    """
    ip, _, length = text.partition("/")
    try:
        plain = f"{_LEADING_ZEROS.sub('', ip)}/{int(length)}" if length.isdecimal() else ""
        return ip_network(plain, strict=False)
    except ValueError:
        return None


def _range_fault(text: str) -> str:
    """Returns why a text is not a range, "" if it is one."""
    network = parse_cidr(text)
    if network is None:
        return _NOT_A_RANGE
    ip_text, _, length = text.partition("/")
    ip = parse(ip_text)
    if ip is None or length != str(network.prefixlen):
        return "must not have leading 0s in IP or prefix length"
    if _is_mapped(ip):
        return "must not have an IPv4-mapped IPv6 address"
    return "" if ip == network.network_address else _HOST_BITS
