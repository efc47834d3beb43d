"""The ranges of cluster IPs, and which addresses in them are free.

The ranges are those of the ServiceCIDRs that are ready and not being deleted. As long as there is
no ServiceCIDR `kubernetes`, that of the settings is one of them, so that Services get addresses
before an API server has created it. An address is free if no Service has it and no IPAddress names
it.

Source: pkg/registry/core/service/ipallocator/cidrallocator.go, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from kcm.api.core_v1 import Service
from kcm.api.networking_v1 import IPAddress, IPAddressSpec, ParentReference, ServiceCIDR
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind, KubeObject, ObjectMeta
from kcm.redisio import RedisIO
from kcm.store.reader import ObjectList
from kcm.store.service_entries import ip_entry

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_NAME = "kubernetes"  # the ServiceCIDR of the range in the settings
MANAGED_BY, ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
FAMILY = "ipaddress.kubernetes.io/ip-family"
CLAIM_GRACE = timedelta(seconds=60)  # how old an IPAddress without a Service is when it is stale
IP_ADDRESSES = IPAddress.resource
_SERVICE_CIDRS = ServiceCIDR.resource


def new_ip_address(ip: str, service: Service) -> IPAddress:
    """Returns the IPAddress of a Service's cluster IP."""
    version = ipaddress.ip_address(ip).version
    labels = {MANAGED_BY: ALLOCATOR, FAMILY: f"IPv{version}"}
    parent = ParentReference(
        group="", resource="services", namespace=service.namespace, name=service.name
    )
    return IPAddress(
        metadata=ObjectMeta(name=str(ipaddress.ip_address(ip)), labels=labels),
        spec=IPAddressSpec(parent_ref=parent),
    )


def parent_key(address: KubeObject | None) -> str:
    """Returns the key of the Service that an IPAddress of the allocator names, "" for others."""
    if not isinstance(address, IPAddress) or address.labels.get(MANAGED_BY) != ALLOCATOR:
        return ""
    parent = address.spec.parent_ref
    if parent is None or parent.group or parent.resource != "services":
        return ""
    return f"{parent.namespace}/{parent.name}"


def is_stale(address: KubeObject, now: datetime) -> bool:
    """Reports whether an IPAddress that no Service has was left over.

    A young one may be the claim of a Service that is being created.
    """
    created = address.metadata.creation_timestamp
    return bool(parent_key(address)) and (created is None or now - created >= CLAIM_GRACE)


class Reader(Protocol):
    """The methods of a store that are needed; see `Store`."""

    def list(self, resource: Resource[Kind]) -> ObjectList[Kind]: ...

    def get_all(self, wanted: Sequence[tuple[Resource[Kind], str]]) -> Sequence[Kind | None]: ...


class ClusterIPs:
    """The ranges of cluster IPs of one store."""

    def __init__(
        self, io: RedisIO, reader: Reader, now: Callable[[], datetime], default: Network
    ) -> None:
        self._io = io
        self._reader = reader
        self._now = now
        self._default = default  # the range of the settings

    def networks(self, family: str = "") -> list[Network]:
        """Returns the ranges of an IP family, that of the default range if it is "".

        The ServiceCIDR `kubernetes` comes first, then the others by name.
        """
        listed = self._reader.list(_SERVICE_CIDRS).items
        cidrs = sorted(listed, key=lambda cidr: (cidr.name != DEFAULT_NAME, cidr.name))
        networks = [network for cidr in cidrs if _is_ready(cidr) for network in _networks(cidr)]
        if all(cidr.name != DEFAULT_NAME for cidr in cidrs):
            networks.insert(0, self._default)
        version = int(family.removeprefix("IPv") or self._default.version)
        return [network for network in networks if network.version == version]

    def are_free(self, ips: Sequence[str]) -> list[bool]:
        """Reports of each address whether no Service has it and no IPAddress names it."""
        keys = self._io.keys
        commands: list[tuple[str, str]] = []
        for ip in ips:
            commands.append(("SCARD", keys.index(ip_entry(ip))))
            commands.append(("EXISTS", keys.object(IP_ADDRESSES.name, ip)))
        counts = self._io.pipeline(commands) if commands else []
        pairs = zip(counts[::2], counts[1::2], strict=True)
        return [held == 0 and named == 0 for held, named in pairs]

    def are_unnamed(self, ips: Sequence[str]) -> list[bool]:
        """Reports of each address whether no IPAddress names it but one that is left over."""
        now = self._now()
        there = self._reader.get_all([(IP_ADDRESSES, ip) for ip in ips]) if ips else ()
        return [address is None or is_stale(address, now) for address in there]


def _is_ready(cidr: ServiceCIDR) -> bool:
    if cidr.metadata.deletion_timestamp is not None:
        return False
    # One without the condition is in use, for the time before the controller has seen it.
    conditions = cidr.status.conditions or ()
    return all(one.status == "True" for one in conditions if one.type == "Ready")


def _networks(cidr: ServiceCIDR) -> list[Network]:
    networks = []
    for text in cidr.spec.cidrs or ():
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            continue
    return networks
