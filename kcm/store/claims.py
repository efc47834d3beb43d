"""Creates the IPAddresses of Services' cluster IPs, and deletes them with the Services.

An IPAddress is created before its Service is written, and deleted if that write fails. It is
deleted after its Service. A process that dies in between leaves one behind, which the controller
service-ip-repair deletes. No two Services get an address meanwhile: the write of a Service is
refused when another has it.

Source: pkg/registry/core/service/storage/alloc.go and
pkg/registry/core/service/ipallocator/ipallocator.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from kcm.api.core_v1 import Service
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.admission.cluster_ips import IP_ADDRESSES, is_stale, new_ip_address, parent_key
from kcm.store.service_entries import HEADLESS, IP_PREFIX
from kcm.store.writes.guards import Unindexed
from kcm.store.writes.items import WriteItem
from kcm.store.writes.results import WriteResult, WriteStatus

WriteItems = Callable[[Sequence[WriteItem]], list[WriteResult]]


class Objects(Protocol):
    """The methods of a store that claims need; see `Store`."""

    def get_all(self, wanted: Sequence[tuple[Resource, str]]) -> Sequence[KubeObject | None]: ...

    def build_create(self, obj: KubeObject) -> WriteItem: ...


@dataclass
class Claims:
    """The IPAddresses that were created for the items of a write, and the items without theirs."""

    made: dict[int, list[KubeObject]] = field(default_factory=dict)  # by the item's number
    refused: dict[int, WriteResult] = field(default_factory=dict)


NO_CLAIMS = Claims()


class AddressClaims:
    """Claims addresses for the items of one store's writes."""

    def __init__(self, objects: Objects, write: WriteItems, now: Callable[[], datetime]) -> None:
        self._objects = objects
        self._write = write
        self._now = now

    def claim(self, items: Sequence[WriteItem]) -> Claims:
        """Creates an IPAddress for each address that an item gives to its Service."""
        wanted = [(n, guard, item) for n, item in enumerate(items) for guard in _new_ips(item)]
        if not wanted:
            return NO_CLAIMS
        creations = [
            self._objects.build_create(new_ip_address(_ip_of(guard), _service(item)))
            for _, guard, item in wanted
        ]
        self._delete_stale([creation.obj.name for creation in creations])
        claims = Claims()
        for (n, guard, item), result in zip(wanted, self._write(creations), strict=True):
            if result.ok:
                claims.made.setdefault(n, []).append(result.get_stored())
            elif result.status is WriteStatus.EXISTS:
                claims.refused[n] = WriteResult(item, WriteStatus.GUARD, failed_guard=guard)
            else:
                claims.refused[n] = WriteResult(item, result.status, result.detail)
        self._delete([obj for n in claims.refused for obj in claims.made.pop(n, ())])
        return claims

    def settle(self, results: Mapping[int, WriteResult], claims: Claims) -> None:
        """Deletes the IPAddresses of Services that were not written, and of those that are gone."""
        failed = [obj for n, made in claims.made.items() if not results[n].ok for obj in made]
        self._delete(failed)
        gone = [
            (ip, result.item.obj.key)
            for result in results.values()
            if result.ok and result.item.op == "delete" and isinstance(result.item.obj, Service)
            for ip in result.item.obj.spec.cluster_ips or ()
            if ip and ip != HEADLESS
        ]
        there = self._objects.get_all([(IP_ADDRESSES, ip) for ip, _ in gone]) if gone else ()
        pairs = zip(gone, there, strict=True)
        self._delete([obj for (_, key), obj in pairs if obj and parent_key(obj) == key])

    def _delete_stale(self, ips: Sequence[str]) -> None:
        """Deletes the IPAddresses that are left over from Services that are gone."""
        now = self._now()
        there = self._objects.get_all([(IP_ADDRESSES, ip) for ip in ips])
        self._delete([obj for obj in there if obj is not None and is_stale(obj, now)])

    def _delete(self, objects: Sequence[KubeObject]) -> None:
        if objects:
            self._write(
                [
                    WriteItem("delete", IP_ADDRESSES, obj, obj.metadata.resource_version or "")
                    for obj in objects
                ]
            )


def _new_ips(item: WriteItem) -> list[Unindexed]:
    """Returns the guards of the addresses that the item gives to a Service."""
    if not isinstance(item.obj, Service) or item.op == "delete":
        return []
    return [
        guard
        for guard in item.guards
        if isinstance(guard, Unindexed) and guard.entry.startswith(IP_PREFIX)
    ]


def _ip_of(guard: Unindexed) -> str:
    return guard.entry.removeprefix(IP_PREFIX)


def _service(item: WriteItem) -> Service:
    assert isinstance(item.obj, Service)  # only Services have guards of addresses
    return item.obj
