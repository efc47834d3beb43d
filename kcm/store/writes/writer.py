"""Sends items to the write script, and returns their results.

Guarantees: items are written in order, each whole or not at all. A call that is repeated after a
lost reply writes nothing twice. Nothing is written once the fence is lost. Does not guarantee
atomicity over several items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kcm import errors
from kcm.redisio import Fence, RedisIO
from kcm.redisio.commands import Argument
from kcm.redisio.scripts import NO_FENCE
from kcm.store.writes import observing
from kcm.store.writes.items import Encoded, WriteItem, WriteResult
from kcm.store.writes.observing import Observer

MAX_ITEMS = 128  # per script call, so that Redis stays responsive to other clients (design 0019)
MAX_BYTES = 512 * 1024  # per script call, unless a single object is larger

Prepared = tuple[WriteItem, Encoded]
Sending = Callable[[Sequence[Prepared]], None]


class Acknowledgement(NamedTuple):
    """The entry of the event bus that a write acknowledges and removes in the same step."""

    stream: str
    group: str
    entry_id: str


NOTHING = Acknowledgement("", "", "")


@dataclass(frozen=True, slots=True)
class WriteCall:
    """The options of the script calls of one write.

    `acknowledge` is carried out if every item of the call is written. `call_id` makes it safe to
    repeat the call; the writer draws one if it is None. Both require that the items fit into one
    call.
    """

    fence: Fence | None = None
    acknowledge: Acknowledgement = NOTHING
    call_id: str | None = None


class Writer:
    """Writes batches of items with the write script. `sending` gets each before it is sent."""

    def __init__(
        self, io: RedisIO, observer: Observer | None = None, sending: Sending | None = None
    ) -> None:
        self._io = io
        self._observer = observer
        self._sending = sending

    def write(self, items: Sequence[WriteItem], call: WriteCall) -> list[WriteResult]:
        """Writes `items`, and returns the result of each.

        Raises: Fenced, RequestTooLarge, BadRequest, StoreUnavailable, OutOfMemory, StorageFull.
        """
        results: list[WriteResult] = []
        for batch in batches(items):
            results += self.send(batch, call)
        return results

    def send(self, batch: Sequence[Prepared], call: WriteCall) -> list[WriteResult]:
        """Writes items that fit into one script call. Raises: as `write`."""
        fenced = call.fence.args() if call.fence else NO_FENCE
        texts: dict[int, tuple[int, bytes]] = {}  # by Python id, the number and the text
        flat: list[Argument] = []
        for _, encoded in batch:
            number, _ = texts.setdefault(id(encoded.shared), (len(texts) + 1, encoded.shared))
            flat += (encoded.header, encoded.head, encoded.tail, number)
        shared = [text for _, text in texts.values()]
        if self._sending is not None:
            self._sending(batch)
        reply = self._io.call(
            "store_write", *fenced, *call.acknowledge, len(shared), *shared, len(batch), *flat,
            call_id=call.call_id,
        )  # fmt: skip
        if reply[0] == "FENCED":
            raise errors.Fenced(f"the write was refused: {call.fence} is no longer held")
        results = [
            WriteResult.decode(item, reply[1 + 2 * n], reply[2 + 2 * n])
            for n, (item, _) in enumerate(batch)
        ]
        if self._observer is not None:
            self._observer.wrote(observing.author_of(self._io), batch, results)
        return results


def batches(items: Sequence[WriteItem]) -> Iterator[list[Prepared]]:
    """Yields `items` encoded, in parts that fit into one call. Raises: RequestTooLarge,
    BadRequest.
    """
    batch: list[Prepared] = []
    size = 0
    for item in items:
        encoded = item.encode()
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
