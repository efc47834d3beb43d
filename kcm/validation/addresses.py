"""Rules for IP addresses and ranges.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/ip.go and
pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from kcm.apimachinery.field_errors import Faults, invalid
from kcm.apimachinery.loopback import is_given_to_pods

_NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_FAMILIES = {"IPv4": IPv4Address, "IPv6": IPv6Address}


def parse(text: str) -> IPv4Address | IPv6Address | None:
    """The address that the text names, if it is one. Zones (`%eth0`) are no part of one."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def address(text: str, path: str) -> Faults:
    return [] if parse(text) else [invalid(path, text, _NOT_AN_IP)]


def of_family(text: str, family: str, path: str) -> Faults:
    """An address of the family IPv4 or IPv6."""
    if isinstance(parse(text), _FAMILIES[family]):
        return []
    return [invalid(path, text, f"must be a valid {family} address")]


def of_endpoint(text: str, path: str) -> Faults:
    """An address that an endpoint may have: as `not_special`, but those that the process runtime
    gives to pods are endpoints, although they are loopback addresses. Upstream has no such pods
    and refuses them."""
    found = parse(text)
    if found is not None and is_given_to_pods(found):
        return []
    return not_special(text, path)


def not_special(text: str, path: str) -> Faults:
    """An address that is not unspecified, loopback or link-local."""
    found = parse(text)
    if found is None:
        return [invalid(path, text, "must be a valid IP address")]
    special = {
        f"unspecified ({text})": found.is_unspecified,
        "in the loopback range (127.0.0.0/8, ::1/128)": found.is_loopback,
        "in the link-local range (169.254.0.0/16, fe80::/10)": found.is_link_local,
        "in the link-local multicast range (224.0.0.0/24, ff02::/10)": _is_local_multicast(found),
    }
    return [invalid(path, text, f"may not be {what}") for what, is_so in special.items() if is_so]


_MULTICAST = {4: ip_network("224.0.0.0/24"), 6: ip_network("ff02::/16")}


def _is_local_multicast(found: IPv4Address | IPv6Address) -> bool:
    return found in _MULTICAST[found.version]


def cidr(text: str, path: str) -> Faults:
    try:
        ip_network(text if "/" in text else "", strict=False)
    except ValueError:
        return [invalid(path, text, _NOT_A_RANGE)]
    return []
