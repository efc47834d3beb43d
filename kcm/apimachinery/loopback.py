"""The loopback addresses that a node of kcm gives to pods.

The process runtime needs no network of its own, since Linux answers on all of 127.0.0.0/8. Its pods
have addresses of one part of it, and pods with the host's network have the node's own.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address

POD_NETWORK = IPv4Network("127.64.0.0/10")
NODE_ADDRESS = IPv4Address("127.0.0.1")


def is_given_to_pods(address: IPv4Address | IPv6Address) -> bool:
    """Reports whether a node of kcm may have given the address to a pod."""
    return address == NODE_ADDRESS or (address.version == 4 and address in POD_NETWORK)
