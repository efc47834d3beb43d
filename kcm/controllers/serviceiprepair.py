"""ServiceIPRepair: makes IPAddresses and the cluster IPs of Services agree.

An IPAddress that is missing is created, and one that no Service has is deleted a minute later. Both
happen when a process died between the writes, when somebody deleted an IPAddress, and to Services
that are older than IPAddresses. kube-apiserver does this in a loop of its own.

Source: pkg/registry/core/service/ipallocator/controller/repairip.go, Kubernetes 1.33.
Departure: it follows changes, and has no loop every three minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.core_v1 import Service
from kcm.api.networking_v1 import IPAddress
from kcm.sdk import Change, Controller, Create, Delete, Plan, Unindexed, View, Watch
from kcm.store.admission.cluster_ips import (
    CLAIM_GRACE,
    is_stale,
    new_ip_address,
    parent_key,
)
from kcm.store.service_entries import HEADLESS, ip_entry


class ServiceIPRepairController(Controller):
    """Compares one address at a time. A key is an address and the key of a Service."""

    name = "service-ip-repair-controller"
    short_name = "serviceiprepair"
    local_only = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Service, addresses_of_service), Watch(IPAddress, address_with_parent))

    def reconcile(self, key: str, view: View) -> Plan:
        ip, _, service_key = key.partition(" ")
        service = view.lister(Service).find(service_key)
        address = view.lister(IPAddress).find(ip)
        if service is not None and ip in cluster_ips_of(service):
            return _create_missing(ip, service, address)
        if address is None or parent_key(address) != service_key:
            return Plan()
        if not is_stale(address, view.now):
            return Plan(requeue_after=CLAIM_GRACE.total_seconds())
        message = f"IPAddress: {ip} for Service {service_key} appears to have leaked: cleaning up"
        plan = Plan().then(Delete(address, guards=(Unindexed(ip_entry(ip)),)))
        return plan.record(address, "IPAddressNotAllocated", message, warning=True)


def _create_missing(ip: str, service: Service, address: IPAddress | None) -> Plan:
    if address is None:
        message = f"Cluster IP [{_family(ip)}]: {ip} is not allocated; repairing"
        plan = Plan().then(Create(new_ip_address(ip, service)))
        return plan.record(service, "ClusterIPNotAllocated", message, warning=True)
    if parent_key(address) == service.key:
        return Plan()
    message = (
        f"Cluster IP [{_family(ip)}]: {ip} was assigned to multiple services; "
        "please recreate service"
    )
    return Plan().record(service, "ClusterIPAlreadyAllocated", message, warning=True)


def _family(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"


def cluster_ips_of(service: Service) -> list[str]:
    """Returns the cluster IPs of a Service, none for a headless one."""
    if service.spec.type == "ExternalName":
        return []
    return [ip for ip in service.spec.cluster_ips or () if ip and ip != HEADLESS]


def addresses_of_service(change: Change, view: View) -> Iterable[str]:
    """Yields a key for each address that a Service got or lost."""
    old, new = change.old, change.new
    before = set(cluster_ips_of(old)) if isinstance(old, Service) else set()
    after = set(cluster_ips_of(new)) if isinstance(new, Service) else set()
    yield from (f"{ip} {change.object.key}" for ip in sorted(before ^ after))


def address_with_parent(change: Change, view: View) -> Iterable[str]:
    """Yields a key for an IPAddress of a Service that is new or gone."""
    service = parent_key(change.object)
    if service and (change.old is None or change.new is None):
        yield f"{change.object.name} {service}"
