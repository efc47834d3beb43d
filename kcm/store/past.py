"""Reads what the watch logs have from before a list, so that watches can go on from there.

Guarantees: what is returned of a kind are all changes after its `floor`, up to the given
resourceVersion, once and in order; entries that kcm did not write are left out. The floor is never
before the epoch, before what was trimmed, or before a log that was deleted and began again. A log
that cannot be read, or does not have the last write, has no past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcm import errors
from kcm.api.scheme import Resource
from kcm.redisio import RedisIO
from kcm.store.watch import MAX_ID, WatchEntry, parse_entry, parse_id, parse_version

_COUNT = 1000  # entries of a log and read: bounds the reply


@dataclass
class Past:
    """The changes of a kind after the resourceVersion `floor`, the oldest first."""

    floor: int
    changes: Sequence[WatchEntry] = ()


@dataclass
class _Reading:
    """What was read of one log so far, the newest first."""

    upto: int
    raw: list[tuple[bytes, dict[bytes, bytes] | None]] = field(default_factory=list)
    size: int = 0
    is_over: bool = False
    floor: int = 0  # what is at or below was not read

    def add(self, reply: Any, most: int, most_bytes: int) -> None:
        """Takes the reply to a read of the next entries."""
        if isinstance(reply, Exception):
            self.is_over, self.floor = True, self.upto
            return
        for entry_id, fields in reply:
            self.size += len((fields or {}).get(b"object", b""))
            if len(self.raw) >= most or self.size > most_bytes:
                self.is_over, self.floor = True, parse_id(entry_id)
                return
            self.raw.append((entry_id, fields))
        self.is_over = len(reply) < _COUNT

    @property
    def end(self) -> str:
        """Returns the greatest id of the next read."""
        return f"({self.raw[-1][0].decode()}" if self.raw else f"{self.upto}-0"


def read_past(
    io: RedisIO, positions: Mapping[Resource, int], most: int, most_bytes: int
) -> dict[Resource, Past]:
    """Returns the past of each kind up to its position: at most so many changes, and bytes of JSON.

    The positions are those of lists in the epoch that this process knows. Raises EpochChanged if
    that has ended, and StoreUnavailable.
    """
    if not positions:
        return {}
    readings = {resource: _Reading(upto) for resource, upto in positions.items()}
    while left := {r: reading for r, reading in readings.items() if not reading.is_over}:
        reads = [
            ("XREVRANGE", io.keys.watch(r.name), reading.end, "-", "COUNT", _COUNT)
            for r, reading in left.items()
        ]
        for reading, reply in zip(left.values(), io.pipeline_each(reads), strict=True):
            reading.add(reply, most, most_bytes)
    names = [resource.name for resource in positions]
    # Last, so that what was trimmed meanwhile is no part of what was read.
    trimmed, written, *epoch = io.pipeline(
        [
            ("HMGET", io.keys.trimmed(), *names),
            ("HMGET", io.keys.last_rv(), *names),
            *io.epoch_reads(),
        ]
    )
    start = io.in_epoch(*epoch)
    if start is None:
        raise errors.EpochChanged
    return {
        resource: _build(resource, reading, max(start, parse_version(below)), parse_version(newest))
        for (resource, reading), below, newest in zip(
            readings.items(), trimmed, written, strict=True
        )
    }


def _build(resource: Resource, reading: _Reading, floor: int, newest: int) -> Past:
    """Returns the changes after `floor`. `newest` is the kind's last write, 0 if unknown."""
    floor = max(floor, reading.floor)
    reached = parse_id(reading.raw[0][0]) if reading.raw else 0
    is_deleted = max(floor, reached) < newest <= reading.upto
    if is_deleted or not floor <= reading.upto <= MAX_ID:
        return Past(reading.upto)
    changes = (parse_entry(resource, *entry) for entry in reversed(reading.raw))
    return Past(floor, [one for one in changes if one and one.resource_version > floor])
