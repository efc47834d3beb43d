"""Node IPAM: gives each node a range of pod addresses, with --allocate-node-cidrs.

All nodes without a range share one key, so that one sync at a time allocates ranges, with one write
for many nodes. A guard on the range's index entry refuses a range that another writer has used
meanwhile.

Source: pkg/controller/nodeipam/ipam/range_allocator.go and cidrset/cidr_set.go, Kubernetes 1.33.
Departure: the lowest free range is used; upstream goes through all ranges before it uses one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from pydantic import Field, model_validator

from kcm import errors
from kcm.api.core_v1 import Node
from kcm.sdk import Change, Controller, Options, Patch, Plan, Unindexed, View, Watch
from kcm.settings import Settings
from kcm.store.indexes import pod_cidr_entry

Network = IPv4Network | IPv6Network

ALLOCATION = "allocation"  # the only key
MASK_SIZES = {4: 24, 6: 64}
MAX_BITS = 16  # the bits of node ranges within an IPv6 range, as upstream: 65,536 nodes


class NodeIpamOptions(Options):
    """The options of the node IPAM controller."""

    allocate_node_cidrs: bool = Field(
        False,
        description="Should CIDRs for Pods be allocated and set on the nodes. Requires "
        "--cluster-cidr",
    )
    cluster_cidr: str = Field(
        "",
        description="CIDR Range for Pods in cluster; two, separated by a comma, for IPv4 and IPv6. "
        "Only used when --allocate-node-cidrs=true; if false, this option will be ignored",
    )
    node_cidr_mask_size: int = Field(
        0, ge=0, le=128, description="Mask size for node cidr in cluster. Default is 24 for IPv4 "
        "and 64 for IPv6"
    )  # fmt: skip
    node_cidr_mask_size_ipv4: int = Field(
        0, ge=0, le=32, description="Mask size for IPv4 node cidr in dual-stack cluster. Default "
        "is 24"
    )  # fmt: skip
    node_cidr_mask_size_ipv6: int = Field(
        0, ge=0, le=128, description="Mask size for IPv6 node cidr in dual-stack cluster. Default "
        "is 64"
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> NodeIpamOptions:
        if self.allocate_node_cidrs:
            list(self.pools())
        return self

    def pools(self) -> Iterator[tuple[Network, int]]:
        """Yields the cluster's ranges, each with the mask size of a node's range.

        Raises ValueError if the options do not fit together.
        """
        texts = [text.strip() for text in self.cluster_cidr.split(",") if text.strip()]
        if not 1 <= len(texts) <= 2:
            raise ValueError("--allocate-node-cidrs needs one or two ranges in --cluster-cidr")
        networks = [ip_network(text, strict=False) for text in texts]
        if len({network.version for network in networks}) < len(networks):
            raise ValueError("--cluster-cidr: expected one IPv4 and one IPv6 range")
        for network in networks:
            mask = self._mask(network.version, dual=len(networks) == 2)
            most = 32 if network.version == 4 else network.prefixlen + MAX_BITS
            if not network.prefixlen <= mask <= most:
                raise ValueError(
                    f"--cluster-cidr: {network} cannot be cut into ranges of /{mask}: at least "
                    f"/{network.prefixlen} and at most /{most}"
                )
            yield network, mask

    def _mask(self, version: int, *, dual: bool) -> int:
        own = self.node_cidr_mask_size_ipv4 if version == 4 else self.node_cidr_mask_size_ipv6
        return own or (0 if dual else self.node_cidr_mask_size) or MASK_SIZES[version]


@dataclass
class Pool:
    """A cluster range that is divided into node ranges, and the node ranges that are in use.

    There may be millions of them, so those in use are kept as spans of first and last number.
    """

    network: Network
    mask: int
    taken: list[tuple[int, int]] = field(default_factory=list)  # a heap
    lowest: int = 0  # all ranges with lower numbers are in use

    def occupy(self, other: Network) -> None:
        """Marks all ranges that overlap with a network as used."""
        if other.version != self.network.version or not self.network.overlaps(other):
            return
        shift = self.network.max_prefixlen - self.mask
        base = int(self.network.network_address)
        first = max(int(other.network_address), base)
        last = min(int(other.broadcast_address), int(self.network.broadcast_address))
        heappush(self.taken, ((first - base) >> shift, (last - base) >> shift))

    def next(self) -> Network | None:
        """Returns the lowest free range, which is in use from now on, or None when none is free."""
        while self.taken and self.taken[0][0] <= self.lowest:
            self.lowest = max(self.lowest, heappop(self.taken)[1] + 1)
        if self.lowest >= 1 << (self.mask - self.network.prefixlen):
            return None
        number, self.lowest = self.lowest, self.lowest + 1
        step = 1 << (self.network.max_prefixlen - self.mask)
        return ip_network(f"{self.network.network_address + number * step}/{self.mask}")


class NodeIpamController(Controller):
    """Sets podCIDR and podCIDRs of nodes that have none. Its only key is ALLOCATION."""

    name = "node-ipam-controller"
    short_name = "nodeipam"
    group = "nodes"
    options_type = NodeIpamOptions
    options: NodeIpamOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Node, self._keys),)

    def concurrent_syncs(self) -> int:
        return 1

    def _keys(self, change: Change, view: View) -> Iterable[str]:
        """Yields the key when a node without a range was added or changed, or when a node was
        deleted.
        """
        node = change.new
        needs = isinstance(node, Node) and not ranges_of(node)
        if self.options.allocate_node_cidrs and (node is None or needs):
            yield ALLOCATION

    def reconcile(self, key: str, view: View) -> Plan:
        nodes = view.lister(Node).list()
        poor = sorted((node for node in nodes if not ranges_of(node)), key=lambda node: node.name)
        if not poor or not self.options.allocate_node_cidrs:
            return Plan()
        pools = [Pool(network, mask) for network, mask in self.options.pools()]
        services = Settings().service_cluster_ip_range.split(",")
        for taken in _networks([*services, *(text for node in nodes for text in ranges_of(node))]):
            for pool in pools:
                pool.occupy(taken)
        return _plan_ranges(poor, pools)


def ranges_of(node: Node) -> Sequence[str]:
    """Returns the node's ranges of pod addresses, as CIDRs."""
    return node.spec.pod_cidrs or ([node.spec.pod_cidr] if node.spec.pod_cidr else [])


def _networks(texts: Iterable[str]) -> Iterator[Network]:
    """Yields the ranges that can be parsed. Others, which a user may have written, are left out."""
    for text in texts:
        try:
            yield ip_network(text.strip(), strict=False)
        except ValueError:
            continue


def _plan_ranges(poor: Sequence[Node], pools: Sequence[Pool]) -> Plan:
    plan = Plan()
    for node in poor:
        networks = [network for pool in pools if (network := pool.next()) is not None]
        if len(networks) < len(pools):
            plan.record(
                node, "CIDRNotAvailable", f"Node {node.name} status is now: CIDRNotAvailable"
            )
            plan.error = errors.ApiError(
                "CIDR allocation failed; there are no remaining CIDRs left"
            )
            continue
        ranges = [str(network) for network in networks]
        guards = tuple(Unindexed(pod_cidr_entry(text)) for text in ranges)
        plan.then(Patch(node, partial(_with_ranges, ranges), guards))
    return plan


def _with_ranges(ranges: Sequence[str], obj: Node) -> Node:
    if ranges_of(obj):
        return obj
    return obj.with_spec(obj.spec.replace(pod_cidr=ranges[0], pod_cidrs=list(ranges)))
