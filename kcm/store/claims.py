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
from dataclasses import dataclass, field, replace
from datetime import datetime

from kcm.api.core_v1 import Service
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.admission.cluster_ips import IP_ADDRESSES, is_stale, new_ip_address, parent_key
from kcm.store.building import ItemBuilder
from kcm.store.pipeline import WritePipeline
from kcm.store.reader import StoreReader
from kcm.store.service_entries import HEADLESS, IP_PREFIX
from kcm.store.writes.guards import Unindexed
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus
from kcm.store.writes.writer import NOTHING, WriteCall


@dataclass
class Claims:
    """The IPAddresses that were created for the items of a write, and the items without theirs."""

    made: dict[int, list[KubeObject]] = field(default_factory=dict)  # by the item's number
    refused: dict[int, WriteResult] = field(default_factory=dict)


NO_CLAIMS = Claims()


class ClaimingWriter:
    """Writes items, and claims the addresses of the Services among them."""

    def __init__(
        self,
        pipeline: WritePipeline,
        reader: StoreReader,
        builder: ItemBuilder,
        now: Callable[[], datetime],
    ) -> None:
        self._pipeline = pipeline
        self._reader = reader
        self._builder = builder
        self._now = now

    def write(self, items: Sequence[WriteItem], call: WriteCall) -> list[WriteResult]:
        """Writes items, and creates and deletes the IPAddresses of the Services among them.

        Raises: as `WritePipeline.write`.
        """
        if not any(isinstance(item.obj, Service) for item in items):
            return self._pipeline.write(items, call)
        claims = self._claim(items)
        if not claims.refused:
            results = dict(enumerate(self._pipeline.write(items, call)))
        else:
            able = [n for n in range(len(items)) if n not in claims.refused]
            call = replace(call, acknowledge=NOTHING)
            written = self._pipeline.write([items[n] for n in able], call) if able else []
            results = claims.refused | dict(zip(able, written, strict=True))
        self._settle(results, claims)
        return [results[n] for n in range(len(items))]

    def _write(self, items: Sequence[WriteItem]) -> list[WriteResult]:
        return self._pipeline.write(items, WriteCall())

    def _claim(self, items: Sequence[WriteItem]) -> Claims:
        """Creates an IPAddress for each address that an item gives to its Service."""
        wanted = [(n, guard, item) for n, item in enumerate(items) for guard in _new_ips(item)]
        if not wanted:
            return NO_CLAIMS
        creations = [
            self._builder.build_create(new_ip_address(_ip_of(guard), _service(item)))
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

    def _settle(self, results: Mapping[int, WriteResult], claims: Claims) -> None:
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
        there = self._reader.get_all([(IP_ADDRESSES, ip) for ip, _ in gone]) if gone else ()
        pairs = zip(gone, there, strict=True)
        self._delete([obj for (_, key), obj in pairs if obj and parent_key(obj) == key])

    def _delete_stale(self, ips: Sequence[str]) -> None:
        """Deletes the IPAddresses that are left over from Services that are gone."""
        now = self._now()
        there = self._reader.get_all([(IP_ADDRESSES, ip) for ip in ips])
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
