"""The way into Redis: items to scripts, scripts to results.

Guarantees: items are written in order, each whole or not at all; a call that is
repeated after a lost reply writes nothing twice; nothing is written once the
fence is lost. Does not guarantee atomicity over several items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcm import errors
from kcm.redisio import Fence, RedisIO
from kcm.redisio.connection import Argument
from kcm.redisio.scripts import NO_FENCE
from kcm.store.writes.items import Encoded, WriteItem
from kcm.store.writes.results import WriteResult, WriteStatus

MAX_ITEMS = 128  # per script call: keeps Redis responsive to others (DESIGN D1)
MAX_BYTES = 512 * 1024  # per script call, unless a single object is larger

Prepared = tuple[WriteItem, Encoded]
NOTHING = ("", "", "")  # to acknowledge


class Writer:
    """Writes batches of items."""

    def __init__(self, io: RedisIO) -> None:
        self._io = io

    def write(
        self,
        items: Sequence[WriteItem],
        *,
        fence: Fence | None = None,
        acknowledge: tuple[str, str, str] = NOTHING,
        call_id: str | None = None,
    ) -> list[WriteResult]:
        """Write `items`; each result says how its item ended.

        `acknowledge` is (stream, group, entry id) of a front-door entry to
        remove in the same step, if all items succeed; it and `call_id` need the
        items to fit one call.

        Raises: Fenced, RequestTooLarge, StoreUnavailable, OutOfMemory, StorageFull.
        """
        results: list[WriteResult] = []
        for batch in batches(items):
            results += self.call(batch, fence, acknowledge, call_id)
        return results

    def call(
        self,
        batch: Sequence[Prepared],
        fence: Fence | None,
        acknowledge: tuple[str, str, str] = NOTHING,
        call_id: str | None = None,
    ) -> Sequence[WriteResult]:
        """Write a batch in one call. Raises as `write`."""
        fenced = fence.args() if fence else NO_FENCE
        texts: dict[int, tuple[int, bytes]] = {}  # by identity: number and text
        flat: list[Argument] = []
        for _, encoded in batch:
            number, _ = texts.setdefault(id(encoded.shared), (len(texts) + 1, encoded.shared))
            flat += (encoded.header, encoded.head, encoded.tail, number)
        shared = [text for _, text in texts.values()]
        reply = self._io.call(
            "store_write", *fenced, *acknowledge, len(shared), *shared, len(batch), *flat,
            call_id=call_id,
        )  # fmt: skip
        if reply[0] == "FENCED":
            raise errors.Fenced(f"the write was refused: {fence} is no longer held")
        results = [
            WriteResult.decode(item, reply[1 + 2 * n], reply[2 + 2 * n])
            for n, (item, _) in enumerate(batch)
        ]
        if any(
            result.status is WriteStatus.ERROR and isinstance(result.error(), errors.WrongTypeOfKey)
            for result in results
        ):
            self._io.mend()
        return results


def batches(items: Sequence[WriteItem]) -> Iterator[list[Prepared]]:
    """Parts of `items` that fit one call each. Raises RequestTooLarge."""
    batch: list[Prepared] = []
    size = 0
    for item in items:
        encoded = item.encoded()
        length = len(encoded.head) + len(encoded.tail)
        if not batch or encoded.shared is not batch[-1][1].shared:
            length += len(encoded.shared)
        if batch and (len(batch) == MAX_ITEMS or size + length > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((item, encoded))
        size += length
    if batch:
        yield batch
