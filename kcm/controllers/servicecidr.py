"""ServiceCIDR: keeps ranges of cluster IPs as long as Services need them.

A ServiceCIDR that is deleted gives no more addresses. Its finalizer goes ten seconds later, once
every address in it is in another ServiceCIDR as well, or free.

Source: pkg/controller/servicecidrs/servicecidrs_controller.go and
pkg/api/servicecidr/servicecidr.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any

from kcm.api.networking_v1 import IPAddress, ServiceCIDR
from kcm.apimachinery.meta_v1 import Condition, KubeObject
from kcm.sdk import Change, Controller, Patch, Plan, View, Watch

Network = IPv4Network | IPv6Network

FINALIZER = "networking.k8s.io/service-cidr-finalizer"
GRACE = timedelta(seconds=10)  # until no allocation that began before the deletion goes on
MANAGED_BY, ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
_READY = Condition(type="Ready", status="True", message="Kubernetes Service CIDR is ready")
_TERMINATING = Condition(
    type="Ready",
    status="False",
    reason="Terminating",
    message="There are still IPAddresses referencing the ServiceCIDR, please remove them or "
    "create a new ServiceCIDR",
)


class ServiceCIDRController(Controller):
    """Sets finalizers and conditions. A key is a ServiceCIDR."""

    name = "service-cidr-controller"
    short_name = "servicecidr"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(ServiceCIDR, changed_ranges), Watch(IPAddress, ranges_of_address))

    def reconcile(self, key: str, view: View) -> Plan:
        cidr = view.lister(ServiceCIDR).find(key)
        if cidr is None:
            return Plan()
        if cidr.metadata.deletion_timestamp is None:
            plan = Plan()
            if FINALIZER not in (cidr.metadata.finalizers or ()):
                plan.then(Patch(cidr, _with_finalizer))
            return plan.then(*_condition_writes(cidr, _READY, view.now))
        if not _can_go(cidr, view):
            return Plan().then(*_condition_writes(cidr, _TERMINATING, view.now))
        wait = cidr.metadata.deletion_timestamp + GRACE - view.now
        if wait > timedelta(0):
            return Plan(requeue_after=wait.total_seconds())
        if FINALIZER not in (cidr.metadata.finalizers or ()):
            return Plan()
        return Plan().then(Patch(cidr, _without_finalizer))


# --- which keys


def changed_ranges(change: Change[ServiceCIDR], view: View) -> Iterable[str]:
    """Yields the changed ServiceCIDR, and those that overlap with one that is new or gone.

    Another range may free one that is being deleted, or hold it.
    """
    yield change.object.key
    if change.old is not None and change.new is not None:
        return
    cidr = change.object
    own = networks_of(cidr)
    for other in view.lister(ServiceCIDR).list():
        if other.name != cidr.name and any(_overlap(a, b) for a in own for b in networks_of(other)):
            yield other.key


def ranges_of_address(change: Change, view: View) -> Iterable[str]:
    """Yields the ServiceCIDRs that contain an address that is new or gone."""
    if change.old is not None and change.new is not None:
        return
    address = change.object
    if address.labels.get(MANAGED_BY) == ALLOCATOR:
        yield from (cidr.key for cidr in _containing(address.name, view))


# --- ranges


def networks_of(cidr: ServiceCIDR) -> list[Network]:
    """Returns the ranges that can be parsed."""
    networks = []
    for text in cidr.spec.cidrs or ():
        try:
            networks.append(ip_network(text))
        except ValueError:
            continue
    return networks


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)


def _gives(network: Network, ip: IPv4Address | IPv6Address) -> bool:
    """Reports whether a Service may get the address from the range.

    The first address, and the last one of IPv4, are not given to Services.
    """
    if ip not in network or ip == network.network_address:
        return False
    return network.version == 6 or ip != network.broadcast_address


def _containing(text: str, view: View) -> Iterator[ServiceCIDR]:
    """Yields the ServiceCIDRs that contain an address."""
    try:
        ip = ip_address(text)
    except ValueError:
        return
    for cidr in view.lister(ServiceCIDR).list():
        if any(_gives(network, ip) for network in networks_of(cidr)):
            yield cidr


def _can_go(cidr: ServiceCIDR, view: View) -> bool:
    """Reports whether no address would be outside of all ranges without this ServiceCIDR."""
    others = [other for other in view.lister(ServiceCIDR).list() if other.name != cidr.name]
    larger = [network for other in others for network in networks_of(other)]
    networks = networks_of(cidr)
    if all(_is_within(network, larger) for network in networks):
        return True
    return not any(
        all(one.name == cidr.name for one in _containing(address.name, view))
        for address in view.lister(IPAddress).list()
        if address.labels.get(MANAGED_BY) == ALLOCATOR and _is_in(address.name, networks)
    )


def _is_within(network: Network, others: Iterable[Network]) -> bool:
    """Reports whether one of the other ranges contains all of a range."""
    return any(
        network.version == other.version
        and network.network_address in other
        and network.broadcast_address in other
        for other in others
    )


def _is_in(text: str, networks: Sequence[Network]) -> bool:
    try:
        ip = ip_address(text)
    except ValueError:
        return False
    return any(_gives(network, ip) for network in networks)


# --- writes


def _with_finalizer(obj: KubeObject) -> KubeObject:
    finalizers = obj.metadata.finalizers or []
    if FINALIZER in finalizers or obj.metadata.deletion_timestamp is not None:
        return obj
    return obj.with_metadata(finalizers=[*finalizers, FINALIZER])


def _without_finalizer(obj: KubeObject) -> KubeObject:
    finalizers = obj.metadata.finalizers or []
    if FINALIZER not in finalizers:
        return obj
    return obj.with_metadata(finalizers=[name for name in finalizers if name != FINALIZER])


def _condition_writes(
    cidr: ServiceCIDR, wanted: Condition, now: datetime
) -> Iterator[Patch[ServiceCIDR]]:
    """Yields the write of the condition, unless the ServiceCIDR has it."""

    def change(obj: ServiceCIDR) -> ServiceCIDR:
        conditions = obj.status.conditions or []
        old = next((one for one in conditions if one.type == wanted.type), None)
        if old is not None and old.replace(last_transition_time=None) == wanted:
            return obj
        same = old is not None and old.status == wanted.status
        since = old.last_transition_time if old is not None and same else now
        new = wanted.replace(last_transition_time=since)
        others = [one for one in conditions if one.type != wanted.type]
        return obj.with_status(obj.status.replace(conditions=[*others, new]))

    if change(cidr) is not cidr:
        yield Patch(cidr, change, status=True)
