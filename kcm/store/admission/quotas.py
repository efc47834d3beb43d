"""Quotas: what is created, or made to take more, is charged in the very same script call.

Guarantees: the objects of a namespace never take more than its quotas had room for when
they were charged, whoever writes, however many at a time, and whoever dies in between;
what is refused costs nothing. A namespace without quotas is not asked for any: the write
script itself sees that there are none, and turns an item back where there are
(docs/designs/0015). Does not guarantee: anything about what was there before a quota, or
about usage that went down; `status.used` then waits for the resourcequota controller.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/{admission,controller}.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING

from kcm.api import scheme
from kcm.api.core_v1 import ResourceQuota
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.quota import Excess, charged, evaluator_of, is_tracked
from kcm.quota.amounts import growth
from kcm.redisio import Fence
from kcm.store.writes.guards import QuotasUnchanged
from kcm.store.writes.items import WriteItem
from kcm.store.writes.results import WriteResult, WriteStatus
from kcm.store.writes.writer import NOTHING, Prepared, Writer, batches

if TYPE_CHECKING:
    from kcm.clock import Clock
    from kcm.store.reader import Reader

MAX_ITEMS = 100  # charged in one call; leaves room for the quotas
_ATTEMPTS = 200  # each but the first is another writer's success

_Quotas = Sequence[ResourceQuota]
_Numbered = tuple[int, WriteItem]


@dataclass(frozen=True)
class Call:
    """What the calls of one `Store.write` have in common."""

    fence: Fence | None = None
    acknowledge: tuple[str, str, str] = NOTHING
    call_id: str | None = None


Plainly = Callable[[Sequence[WriteItem], Call], list[WriteResult]]


class Quotas:
    """Charges the quotas of one store."""

    def __init__(self, reader: Reader, writer: Writer, clock: Clock) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        # One at a time in each process: only other processes can be in the way.
        self._lock = threading.Lock()
        # As they were seen last, by namespace. What they lead to is checked by the script,
        # and nothing is refused for what they say alone.
        self._seen: dict[str, _Quotas] = {}

    def check(self, obj: KubeObject) -> None:
        """Raise Forbidden for what no quota has room for, for those that only try."""
        resource = scheme.resource_of(obj)
        if not is_tracked(resource):
            return
        try:
            quotas = self._read(obj.namespace or "")
            charged(quotas, evaluator_of(resource), obj, None, self._clock.now())
        except Excess as why:
            raise WriteResult(
                WriteItem("create", resource, obj), WriteStatus.QUOTA, str(why)
            ).error() from why

    def write(self, items: Sequence[WriteItem], call: Call, plainly: Plainly) -> list[WriteResult]:
        """Write items, each as far as its namespace's quotas have room for it.

        `plainly` writes what takes of no quota, and finds out what does. Raises: as it.
        """
        known = {n for n, item in enumerate(items) if self._knows(item)}
        others = [n for n in range(len(items)) if n not in known]
        first = replace(call, acknowledge=NOTHING) if known else call
        written = plainly([items[n] for n in others], first) if others else []
        if not known and not any(result.status is WriteStatus.QUOTA for result in written):
            return written
        results = dict(zip(others, written, strict=True))
        turned_back = {n for n, result in results.items() if result.status is WriteStatus.QUOTA}
        if not all(result.ok for n, result in results.items() if n not in turned_back):
            call = replace(call, acknowledge=NOTHING)
        limited = sorted(known | turned_back)
        results |= self._charge([(n, items[n]) for n in limited], call)
        return [results[n] for n in range(len(items))]

    def _knows(self, item: WriteItem) -> bool:
        """Whether the item would be turned back."""
        return bool(self._seen) and _takes(item) and _namespace(item) in self._seen

    def _charge(self, items: Sequence[_Numbered], call: Call) -> dict[int, WriteResult]:
        groups: dict[str, list[_Numbered]] = {}
        for number, item in items:
            groups.setdefault(_namespace(item), []).append((number, item))
        if len(groups) > 1:
            call = replace(call, acknowledge=NOTHING)
        results: dict[int, WriteResult] = {}
        with self._lock:
            for namespace, group in groups.items():
                results |= _Charging(self, namespace, call).write(group)
        return results

    # --- for _Charging

    def seen(self, namespace: str) -> _Quotas | None:
        return self._seen.get(namespace)

    def see(self, namespace: str, quotas: _Quotas) -> None:
        self._seen[namespace] = quotas
        if not quotas:
            del self._seen[namespace]

    def read(self, namespace: str) -> _Quotas:
        """As they are now. Raises StoreUnavailable."""
        quotas = self._read(namespace)
        self.see(namespace, quotas)
        return quotas

    def _read(self, namespace: str) -> _Quotas:
        found = self._reader.in_namespace(_resource(), namespace)
        return [quota for quota in found if isinstance(quota, ResourceQuota)]

    def fit(
        self, quotas: _Quotas, items: Iterable[_Numbered]
    ) -> tuple[_Quotas, list[_Numbered], dict[int, str]]:
        """The quotas with all charged that fits, what fits, and why the rest does not."""
        now = self._clock.now()
        fitting, refused = [], {}
        for number, item in items:
            evaluator = evaluator_of(item.resource)
            try:
                quotas = charged(quotas, evaluator, item.obj, item.replaced, now)
            except Excess as why:
                refused[number] = str(why)
            else:
                fitting.append((number, item))
        return quotas, fitting, refused

    def send(self, batch: Sequence[Prepared], call: Call) -> list[WriteResult]:
        return list(self._writer.call(batch, call.fence, call.acknowledge, call.call_id))


@dataclass
class _Charging:
    """The writes of one call in one namespace."""

    quotas: Quotas
    namespace: str
    call: Call
    results: dict[int, WriteResult] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)  # of the calls

    def write(self, items: Sequence[_Numbered]) -> dict[int, WriteResult]:
        for part in _parts(items):
            whole = len(part) == len(items)
            self._write_part(dict(part), self.call.acknowledge if whole else NOTHING)
        return self.results

    def _write_part(self, pending: dict[int, Prepared], acknowledge: tuple[str, str, str]) -> None:
        before, fresh = self.quotas.seen(self.namespace), False
        for _ in range(_ATTEMPTS):
            if before is None:
                before, fresh = self.quotas.read(self.namespace), True
            items = [(number, item) for number, (item, _) in pending.items()]
            after, fitting, refused = self.quotas.fit(before, items)
            if refused and not fresh:
                before = None
                continue
            batch = self._batch(before, after, [pending[number] for number, _ in fitting])
            sent = self._send(batch, NOTHING if refused else acknowledge) if fitting else []
            if all(result.ok for result in sent):
                for number, why in refused.items():
                    self.results[number] = WriteResult(pending[number][0], WriteStatus.QUOTA, why)
                self._settle(fitting, sent)
                self._saw(before, sent[len(fitting) :])
                return
            if any(map(_is_overtaken, sent)):
                before, fresh = None, False
            done = [(n, r) for n, r in zip(fitting, sent, strict=False) if _is_final(r)]
            self._settle([n for n, _ in done], [r for _, r in done])
            for (number, _), _ in done:
                del pending[number]
        for number, (item, _) in pending.items():
            self.results[number] = WriteResult(item, WriteStatus.CONFLICT)

    def _batch(
        self, before: _Quotas, after: _Quotas, wanted: Sequence[Prepared]
    ) -> Iterator[Prepared]:
        """The objects under the guard that the quotas are as we saw them, then the quotas."""
        versions = {quota.name: quota.metadata.resource_version or "" for quota in before}
        guard = QuotasUnchanged(self.namespace, tuple(versions.items()))
        for item, encoded in wanted:
            guarded = replace(item, guards=(*item.guards, guard), charged=True)
            yield guarded, replace(encoded, header=guarded.header())
        for old, new in zip(before, after, strict=True):
            if new is not old:
                version = versions[old.name]
                item = WriteItem("update", _resource(), new, version, charged=True)
                yield item, item.encoded()

    def _send(
        self, batch: Iterable[Prepared], acknowledge: tuple[str, str, str]
    ) -> list[WriteResult]:
        own = self.call.call_id
        call_id = f"{own}:quota:{self.namespace}:{next(self.numbers)}" if own else None
        return self.quotas.send(list(batch), Call(self.call.fence, acknowledge, call_id))

    def _settle(self, items: Sequence[_Numbered], results: Iterable[WriteResult]) -> None:
        for (number, item), result in zip(items, results, strict=False):
            self.results[number] = replace(result, item=item)

    def _saw(self, before: _Quotas, written: Iterable[WriteResult]) -> None:
        now = {result.item.obj.name: result.stored() for result in written}
        quotas = [now.get(quota.name, quota) for quota in before]
        self.quotas.see(self.namespace, [q for q in quotas if isinstance(q, ResourceQuota)])


def _parts(items: Sequence[_Numbered]) -> Iterator[list[tuple[int, Prepared]]]:
    """What goes in one call each: no object twice, and not too much."""
    queue = iter([number for number, _ in items])
    for batch in batches([item for _, item in items]):
        part: list[tuple[int, Prepared]] = []
        names: set[tuple[str, str]] = set()
        for prepared in batch:
            name = (prepared[0].resource.name, prepared[0].obj.key)
            if len(part) == MAX_ITEMS or name in names:
                yield part
                part, names = [], set()
            part.append((next(queue), prepared))
            names.add(name)
        yield part


def _takes(item: WriteItem) -> bool:
    if item.op == "create":
        return not item.anywhere and is_tracked(item.resource)
    return item.replaced is not None


def _namespace(item: WriteItem) -> str:
    return item.obj.namespace or ""


def _is_overtaken(result: WriteResult) -> bool:
    """Whether the quotas were not what they seemed."""
    if result.item.resource is _resource() and result.item.op == "update":
        return not result.ok and result.status is not WriteStatus.WITHHELD
    return isinstance(result.failed_guard, QuotasUnchanged)


def _is_final(result: WriteResult) -> bool:
    """Whether an object's own state decided, not that of the quotas or of others."""
    return result.status is not WriteStatus.WITHHELD and not _is_overtaken(result)


def _resource() -> Resource:
    return scheme.resource_of(ResourceQuota)


def grows(resource: Resource, new: KubeObject, old: KubeObject, now: datetime) -> bool:
    """Whether an update makes the object take more of some quota."""
    evaluator = evaluator_of(resource)
    if not evaluator.on_update:
        return False
    return any(growth(evaluator.usage(new, now), evaluator.usage(old, now)).values())
