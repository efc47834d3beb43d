"""The loopback addresses that nodes of kcm give to pods.

The process runtime needs no network of its own, since Linux accepts all of 127.0.0.0/8 as local
addresses. Pods get addresses of one part of it. Pods with the host's network get the node's.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address

POD_NETWORK = IPv4Network("127.64.0.0/10")
NODE_ADDRESS = IPv4Address("127.0.0.1")


def is_given_to_pods(address: IPv4Address | IPv6Address) -> bool:
    """Reports whether the address is one that nodes of kcm give to pods."""
    return address == NODE_ADDRESS or (address.version == 4 and address in POD_NETWORK)
