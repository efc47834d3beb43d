"""Converts custom objects by asking webhooks, for requests and for the entries of watch caches.

Objects of one request are converted as the request needs them. An entry of a watch cache is
converted once for all lists and watches that show it: who needs an entry that is being converted
waits for that. All waiting happens in the event loop, so a webhook that is slow holds up only those
who need its objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from kcm.api.custom.kinds import CustomObject
from kcm.api.scheme import Resource
from kcm.apiextensions import conversion
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.egress.conversion.calls import ConversionCall, split
from kcm.apiserver.egress.conversion.metrics import ConversionMetrics
from kcm.apiserver.egress.posting import BackendClient
from kcm.apiserver.egress.waiting import LoopWaiter

_AT_ONCE = 4  # reviews of one list or watch that wait for answers
_SMALL = 64 * 1024  # bytes of JSON that are handled in the event loop; the rest in a thread


class WebhookConverter:
    """Asks conversion webhooks. Handlers and watches share it."""

    def __init__(
        self, client: BackendClient, waiter: LoopWaiter, registry: CollectorRegistry
    ) -> None:
        self._client = client
        self._waiter = waiter
        self._counts = ConversionMetrics(registry)
        # Used in the event loop only.
        self._under_way: dict[tuple[Entry, Resource], asyncio.Task[None]] = {}

    def convert(self, objects: Sequence[CustomObject], target: Resource) -> list[CustomObject]:
        """Returns the objects in the version of `target`, in their order.

        None of them is in that version. It waits, in a thread. Raises ConversionFailed.
        """
        converted: list[CustomObject] = []
        for batch in split(objects):
            call = ConversionCall(batch, target, self._counts)
            body = self._waiter.wait(lambda call=call: call.send(self._client))  # type: ignore[misc]
            converted += call.finish(body)
        return converted

    def convert_entries(self, entries: Sequence[Entry], target: Resource) -> None:
        """Does what `convert_entries_soon` does, and waits for it in a thread."""
        if conversion.webhook_versions(target) is None:
            return
        pending = [entry for entry in entries if needs_webhook(entry, target)]
        if pending:
            self._waiter.wait(lambda: self.convert_entries_soon(pending, target))

    async def convert_entries_soon(self, entries: Sequence[Entry], target: Resource) -> None:
        """Makes entries ready to be shown in the version of `target`, see `Entry.convert_to`.

        It runs in the event loop. Raises ConversionFailed if one of them cannot be converted.
        """
        if conversion.webhook_versions(target) is None:
            return
        waits: set[asyncio.Task[None]] = set()
        new: dict[Entry, None] = {}
        for entry in entries:
            if (task := self._under_way.get((entry, target))) is not None:
                waits.add(task)
            elif needs_webhook(entry, target):
                new[entry] = None
        if new:
            waits.add(self._start(list(new), target))
        if not waits:
            return
        await asyncio.wait(waits)
        for task in waits:
            task.result()

    def _start(self, entries: Sequence[Entry], target: Resource) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._convert_all(entries, target))
        for entry in entries:
            self._under_way[entry, target] = task

        def forget(ended: asyncio.Task[None]) -> None:
            for entry in entries:
                self._under_way.pop((entry, target), None)
            if not ended.cancelled():
                ended.exception()  # those who wait raise it; perhaps nobody waits any more

        task.add_done_callback(forget)
        return task

    async def _convert_all(self, entries: Sequence[Entry], target: Resource) -> None:
        """Converts entries in batches, some at once, and ends with the first failure."""
        versions = conversion.webhook_versions(target)
        assert versions is not None
        size = sum(entry.size for entry in entries)

        def prepare() -> list[tuple[ConversionCall, list[Entry]]]:
            objects = [conversion.read(one.raw, versions.version_of(one.raw)) for one in entries]
            calls, left = [], list(entries)
            for batch in split(objects):
                calls.append((ConversionCall(batch, target, self._counts), left[: len(batch)]))
                left = left[len(batch) :]
            return calls

        calls = prepare() if size <= _SMALL else await asyncio.to_thread(prepare)
        places = asyncio.Semaphore(_AT_ONCE)
        parts = (self._convert_part(call, part, target, places) for call, part in calls)
        await asyncio.gather(*parts)

    async def _convert_part(
        self,
        call: ConversionCall,
        entries: Sequence[Entry],
        target: Resource,
        places: asyncio.Semaphore,
    ) -> None:
        async with places:
            body = await call.send(self._client)

        def finish() -> None:
            for entry, obj in zip(entries, call.finish(body), strict=True):
                entry.keep_converted(target, obj)

        if len(body) <= _SMALL:
            finish()
        else:
            await asyncio.to_thread(finish)


def needs_webhook(entry: Entry, target: Resource) -> bool:
    """Reports whether a webhook must be asked before the entry can be shown in a version.

    Raises BadRequest for an entry in a version that the kind does not have.
    """
    versions = conversion.webhook_versions(target)
    if versions is None or entry.is_converted(target):
        return False
    return versions.version_of(entry.raw) is not target
