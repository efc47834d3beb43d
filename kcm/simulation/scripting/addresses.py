"""Allocates addresses to simulated pods."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

_Network = IPv4Network | IPv6Network


class AddressRange:
    """The addresses of one network, except the first and, in IPv4, the last."""

    def __init__(self, cidr: str) -> None:
        """Raises ValueError if the text is not a network."""
        self.network: _Network = ip_network(cidr, strict=False)
        self._next = 1
        last = 1 if self.network.version == 4 else 0
        self._end = max(self.network.num_addresses - last, 2)
        self._free: deque[int] = deque()  # released offsets, the oldest first
        self._used: set[int] = set()

    def take(self) -> str | None:
        """Returns a free address, or None if there is none."""
        while self._next < self._end:
            offset, self._next = self._next, self._next + 1
            if offset not in self._used:
                return self._use(offset)
        while self._free:
            offset = self._free.popleft()
            if offset not in self._used:
                return self._use(offset)
        return None

    def _use(self, offset: int) -> str:
        self._used.add(offset)
        return str(self.network[offset])

    def occupy(self, address: str) -> bool:
        """Marks an address as used.

        Returns False if it is outside of the network or used already.
        """
        offset = self._offset(address)
        if offset is None or offset in self._used:
            return False
        self._used.add(offset)
        return True

    def release(self, address: str) -> None:
        """Frees an address. Does nothing if it is not used."""
        offset = self._offset(address)
        if offset is not None and offset in self._used:
            self._used.remove(offset)
            self._free.append(offset)

    def _offset(self, address: str) -> int | None:
        parsed = ip_address(address)
        if parsed.version != self.network.version or parsed not in self.network:
            return None
        return int(parsed) - int(self.network.network_address)


class PodAddresses:
    """All address ranges of a simulator: those of nodes with podCIDRs, and one for other nodes."""

    def __init__(self, common: str) -> None:
        self._common = AddressRange(common)
        self._ranges: dict[str, AddressRange] = {}

    def take(self, cidrs: Iterable[str]) -> tuple[str, ...]:
        """Takes an address from each of a node's ranges. Returns () if one has no free address.

        Without ranges, takes one from the common range.
        """
        ranges = [self._range(cidr) for cidr in cidrs] or [self._common]
        taken = [cidr_range.take() for cidr_range in ranges]
        if None not in taken:
            return tuple(address for address in taken if address)
        self.release(tuple(address for address in taken if address))
        return ()

    def occupy(self, cidrs: Iterable[str], addresses: Iterable[str]) -> None:
        """Marks the addresses of a pod that runs already as used."""
        ranges = [*(self._range(cidr) for cidr in cidrs), self._common]
        for address in addresses:
            any(cidr_range.occupy(address) for cidr_range in ranges)

    def release(self, addresses: Iterable[str]) -> None:
        """Frees addresses."""
        for address in addresses:
            for cidr_range in (self._common, *self._ranges.values()):
                if ip_address(address) in cidr_range.network:
                    cidr_range.release(address)
                    break

    def _range(self, cidr: str) -> AddressRange:
        if cidr not in self._ranges:
            self._ranges[cidr] = AddressRange(cidr)
        return self._ranges[cidr]
