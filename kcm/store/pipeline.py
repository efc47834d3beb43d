"""The steps of a write through the store, from items to results.

1. Admit: `kcm.store.building` turns what a caller sent into items: defaulted, validated and
   admitted objects with the guards that their kind needs.
2. Charge: objects that count for quotas are written together with them (`kcm.store.charging`).
   The write script refuses items that should have been charged and were not, so writes to a
   namespace without quotas need not look for quotas.
3. Write: one script call for as many items as fit (`kcm.store.writes.writer`).
4. Settle: if a create failed only because a system namespace is missing, that is created and
   the create is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kcm.api.core_v1 import Namespace
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.store.admission.quotas import QuotaMemory
from kcm.store.charging import ChargedWriter, Numbered
from kcm.store.namespaces import SYSTEM, NamespaceState
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus
from kcm.store.writes.writer import NOTHING, WriteCall, Writer

Build = Callable[[KubeObject], WriteItem]


class WritePipeline:
    """Charges, writes and settles items. `build` returns the item that creates an object."""

    def __init__(
        self, quotas: QuotaMemory, charged: ChargedWriter, writer: Writer, build: Build
    ) -> None:
        self._quotas = quotas
        self._charged = charged
        self._writer = writer
        self._build = build

    def write(self, items: Sequence[WriteItem], call: WriteCall) -> list[WriteResult]:
        """Writes items in as few calls as possible, and returns their results in order.

        `call.acknowledge` is carried out only if all items fit into one call. Raises: as
        `Writer.write`.
        """
        limited = {n for n, item in enumerate(items) if self._quotas.is_limited(item)}
        if limited and len(limited) == len(items):
            return self._write_charged(list(enumerate(items)), call, {})
        free = [(n, item) for n, item in enumerate(items) if n not in limited]
        results = self._write_free(free, replace(call, acknowledge=NOTHING) if limited else call)
        limited |= {n for n, result in results.items() if result.status is WriteStatus.QUOTA}
        if not limited:
            return list(results.values())
        if not all(result.ok for n, result in results.items() if n not in limited):
            call = replace(call, acknowledge=NOTHING)
        return self._write_charged([(n, items[n]) for n in sorted(limited)], call, results)

    def _write_charged(
        self, items: Sequence[Numbered], call: WriteCall, results: dict[int, WriteResult]
    ) -> list[WriteResult]:
        """Writes items together with their quotas, and returns all results in order."""
        results |= self._charged.write(items, call)
        return [results[n] for n in sorted(results)]

    def _write_free(self, items: Sequence[Numbered], call: WriteCall) -> dict[int, WriteResult]:
        """Writes items that are not known to count for quotas, and creates missing system
        namespaces.
        """
        written = self._writer.write([item for _, item in items], call)
        results = {n: result for (n, _), result in zip(items, written, strict=True)}
        missing = {n for n, result in results.items() if _misses_system_namespace(result)}
        if not missing:
            return results
        self._create_namespaces({results[n].item.obj.namespace or "" for n in missing})
        others_fine = all(result.ok for n, result in results.items() if n not in missing)
        again = [(n, results[n].item) for n in sorted(missing)]
        retry = WriteCall(
            call.fence,
            call.acknowledge if others_fine else NOTHING,
            call.call_id and f"{call.call_id}:again",
        )
        written = self._writer.write([item for _, item in again], retry)
        return results | {n: result for (n, _), result in zip(again, written, strict=True)}

    def _create_namespaces(self, names: set[str]) -> None:
        """Creates system namespaces. Those that exist by now are no error."""
        items = [self._build(Namespace(metadata=ObjectMeta(name=name))) for name in sorted(names)]
        for result in self._writer.write(items, WriteCall()):
            if result.status is not WriteStatus.EXISTS:
                result.get_stored()


def _misses_system_namespace(result: WriteResult) -> bool:
    missing = (result.status, result.detail) == (WriteStatus.NAMESPACE, NamespaceState.MISSING)
    return missing and result.item.obj.namespace in SYSTEM
