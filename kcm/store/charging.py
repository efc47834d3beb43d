"""Writes objects together with the quotas that they are charged to, in one call.

Guarantees: the objects of a namespace never use more than its quotas had room for when they were
charged, whatever other processes write at the same time, and even if a process dies. A refused
object is not charged (docs/designs/0015). Does not guarantee that objects from before a quota, or
usage that has decreased, are counted: the resourcequota controller updates `status.used` for them.

Source: plugin/pkg/admission/resourcequota/controller.go (checkQuotas), Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from kcm.api.core_v1 import ResourceQuota
from kcm.clock import Clock
from kcm.redisio import greenlets
from kcm.store.admission.quotas import QuotaMemory, Quotas, charge, quota_resource
from kcm.store.writes import observing
from kcm.store.writes.guards import QuotasUnchanged
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus
from kcm.store.writes.writer import NOTHING, Acknowledgement, Prepared, WriteCall, Writer, batches

MAX_ITEMS = 100  # the most items charged in one call, which leaves room for the quotas
_ATTEMPTS = 200  # each attempt after the first follows another writer's success

Numbered = tuple[int, WriteItem]


class ChargedWriter:
    """Writes items together with the quotas of their namespaces. Thread-safe."""

    def __init__(self, memory: QuotaMemory, writer: Writer, clock: Clock) -> None:
        self._memory = memory
        self._writer = writer
        self._clock = clock
        # One call at a time in each process, so that only other processes can overtake it.
        self._lock = threading.Lock()

    def write(self, items: Sequence[Numbered], call: WriteCall) -> dict[int, WriteResult]:
        """Writes numbered items if their quotas have room, and returns the results by number.

        Raises: as `Writer.write`.
        """
        groups: dict[str, list[Numbered]] = {}
        for number, item in items:
            groups.setdefault(item.obj.namespace or "", []).append((number, item))
        if len(groups) > 1:
            call = replace(call, acknowledge=NOTHING)
        # In a greenlet, the lock would be held while other greenlets of the thread run.
        return greenlets.block(observing.carry(partial(self._write_groups, groups, call)))

    def _write_groups(
        self, groups: Mapping[str, Sequence[Numbered]], call: WriteCall
    ) -> dict[int, WriteResult]:
        results: dict[int, WriteResult] = {}
        with self._lock:
            for namespace, group in groups.items():
                writes = _NamespaceWrites(namespace, call, self._memory, self._writer, self._clock)
                results |= writes.write(group)
        return results


@dataclass
class _NamespaceWrites:
    """The writes to one namespace in a call of `ChargedWriter.write`."""

    namespace: str
    call: WriteCall
    memory: QuotaMemory
    writer: Writer
    clock: Clock
    results: dict[int, WriteResult] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)  # of the script calls

    def write(self, items: Sequence[Numbered]) -> Mapping[int, WriteResult]:
        """Writes the items in as many script calls as they need, and returns the results by
        number.
        """
        for part in _split(items):
            is_whole = len(part) == len(items)
            self._write_part(part, self.call.acknowledge if is_whole else NOTHING)
        return self.results

    def _write_part(self, pending: dict[int, Prepared], acknowledge: Acknowledgement) -> None:
        """Charges and writes the items of one script call.

        If a quota has changed, the items that are not written yet are charged to the present quotas
        and tried again.
        """
        quotas, is_fresh = self.memory.recall(self.namespace), False
        for _ in range(_ATTEMPTS):
            if quotas is None:
                quotas, is_fresh = self.memory.read(self.namespace), True
                self.memory.remember(self.namespace, quotas)
            items = [(number, item) for number, (item, _) in pending.items()]
            charged = charge(quotas, items, self.clock.now())
            if charged.refused and not is_fresh:
                quotas = None
                continue
            batch = self._batch(quotas, charged.quotas, [pending[n] for n in charged.fitting])
            sent = self._send(batch, NOTHING if charged.refused else acknowledge)
            if all(result.ok for result in sent):
                self._refuse(pending, charged.refused)
                self._settle(pending, zip(charged.fitting, sent, strict=False))
                self._remember(quotas, sent[len(charged.fitting) :])
                return
            if any(map(_met_other_quotas, sent)):
                quotas, is_fresh = None, False
            final = [(n, r) for n, r in zip(charged.fitting, sent, strict=False) if _is_final(r)]
            self._settle(pending, final)
            for number, _ in final:
                del pending[number]
        for number, (item, _) in pending.items():
            self.results[number] = WriteResult(item, WriteStatus.CONFLICT)

    def _batch(
        self, before: Quotas, after: Quotas, wanted: Sequence[Prepared]
    ) -> Iterator[Prepared]:
        """Yields the objects, with a guard that the quotas are unchanged, then the changed
        quotas.
        """
        versions = {quota.name: quota.metadata.resource_version or "" for quota in before}
        guard = QuotasUnchanged(self.namespace, tuple(versions.items()))
        for item, encoded in wanted:
            guarded = replace(item, guards=(*item.guards, guard), charged=True)
            yield guarded, replace(encoded, header=guarded.encode_header())
        for old, new in zip(before, after, strict=True):
            if new is not old:
                version = versions[old.name]
                item = WriteItem("update", quota_resource(), new, version, charged=True)
                yield item, item.encode()

    def _send(
        self, batch: Iterable[Prepared], acknowledge: Acknowledgement
    ) -> Sequence[WriteResult]:
        prepared = list(batch)
        if not prepared:
            return ()
        own = self.call.call_id
        call_id = f"{own}:quota:{self.namespace}:{next(self.numbers)}" if own else None
        return self.writer.send(prepared, WriteCall(self.call.fence, acknowledge, call_id))

    def _refuse(self, pending: Mapping[int, Prepared], refused: Mapping[int, str]) -> None:
        for number, why in refused.items():
            self.results[number] = WriteResult(pending[number][0], WriteStatus.QUOTA, why)

    def _settle(
        self, pending: Mapping[int, Prepared], results: Iterable[tuple[int, WriteResult]]
    ) -> None:
        for number, result in results:
            self.results[number] = replace(result, item=pending[number][0])

    def _remember(self, before: Quotas, written: Iterable[WriteResult]) -> None:
        now = {result.item.obj.name: result.get_stored() for result in written}
        quotas = [now.get(quota.name, quota) for quota in before]
        self.memory.remember(self.namespace, [q for q in quotas if isinstance(q, ResourceQuota)])


def _split(items: Sequence[Numbered]) -> Iterator[dict[int, Prepared]]:
    """Yields parts of the items for one script call each, by number.

    A part has no object twice, at most MAX_ITEMS items, and a limited size.
    """
    numbers = iter([number for number, _ in items])
    for batch in batches([item for _, item in items]):
        part: dict[int, Prepared] = {}
        names: set[tuple[str, str]] = set()
        for prepared in batch:
            name = (prepared[0].resource.name, prepared[0].obj.key)
            if len(part) == MAX_ITEMS or name in names:
                yield part
                part, names = {}, set()
            part[next(numbers)] = prepared
            names.add(name)
        yield part


def _met_other_quotas(result: WriteResult) -> bool:
    """Reports whether the write failed because a quota had changed since it was charged."""
    if result.item.resource is quota_resource() and result.item.op == "update":
        return not result.ok and result.status is not WriteStatus.WITHHELD
    return isinstance(result.failed_guard, QuotasUnchanged)


def _is_final(result: WriteResult) -> bool:
    """Reports whether the write needs no other attempt.

    It needs one if a quota had changed, or if another item of the same charge was not written.
    """
    return result.status is not WriteStatus.WITHHELD and not _met_other_quotas(result)
