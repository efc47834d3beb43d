"""The addresses to which a request for a pod or a node may be sent.

Programs that listen on loopback or link-local addresses trust their machine, so nobody may reach
them through the API server.

Source: IsGlobalUnicast of Go's net.IP, as IsProxyableHostname in pkg/proxy/util/utils.go and
isProxyableHostname in pkg/registry/core/node/strategy.go ask it, Kubernetes 1.36.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

from kcm import errors

_BROADCAST = IPv4Address("255.255.255.255")


def require_global(address: str) -> IPv4Address | IPv6Address:
    """Returns the address, without its mapping to IPv6. Raises BadRequest for one of this machine
    or its link, for a group's, and for text that is no address.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        raise errors.BadRequest("address not allowed") from None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    real = mapped or parsed
    if (
        real.is_loopback
        or real.is_link_local
        or real.is_multicast
        or real.is_unspecified
        or real == _BROADCAST
        or (isinstance(real, IPv6Address) and real.scope_id is not None)
    ):
        raise errors.BadRequest("address not allowed")
    return real


async def resolve(host: str, port: int, *, to_global: bool) -> list[str]:
    """Returns the addresses of the host. With `to_global`, all of them are global ones.

    The caller connects to one of them, not to the name, which could lead elsewhere the next time.
    Raises BadRequest and OSError.
    """
    try:
        addresses = [str(ip_address(host))]
    except ValueError:  # a name, or a form such as 127.1 that only the resolver reads
        loop = asyncio.get_running_loop()
        entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    return [str(require_global(one)) for one in addresses] if to_global else addresses
