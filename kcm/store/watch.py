"""The watch: reading the resources' streams (DESIGN D2).

Guarantees: reading from the resourceVersion of a list, every later change of
the resource comes once and in order, or the reader is told that it is `gone`
(410): entries behind its position were trimmed, the server restarted (D17), or
the stream was set aside. Entries that are not ours are skipped, but counted in
the position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from kcm.api.scheme import Resource
from kcm.redisio import RedisIO

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

MAX_ID = 1 << 52  # beyond it a position was typed by hand, see store_write.lua
_TYPES = frozenset(get_args(ChangeType)) - {"BOOKMARK"}
_COUNT = 1000  # entries per stream and read: bounds the reply


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a watch stream."""

    resource: Resource
    resource_version: int
    type: ChangeType
    key: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Changes:
    """What one read brought, per resource in order."""

    entries: Sequence[Change] = ()
    gone: frozenset[Resource] = frozenset()
    positions: Mapping[Resource, int] = field(default_factory=dict)


class WatchReader:
    """Reads several resources' streams with one blocking call."""

    def __init__(self, io: RedisIO) -> None:
        self._io = io

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Changes after `positions`, waiting up to `block_ms` for the first.

        `gone` names resources that must be listed again. Raises: StoreUnavailable.
        """
        resources = list(positions)
        keys = [self._io.keys.watch(resource.name) for resource in resources]
        ids = [f"{positions[resource]}-0" for resource in resources]
        names = [resource.name for resource in resources]
        block = ("BLOCK", block_ms) if block_ms else ()
        # The checks ride behind the blocking read: they see the state after it.
        read, trimmed, epoch = self._io.pipeline(
            [
                ("XREAD", "COUNT", _COUNT, *block, "STREAMS", *keys, *ids),
                ("HMGET", self._io.keys.trimmed(), *names),
                ("HGET", self._io.keys.meta(), "epoch_start"),
            ]
        )
        by_key = dict(zip(keys, resources, strict=True))
        found = {by_key[name.decode()]: entries for name, entries in _streams(read)}
        floors = {
            resource: max(int(value or 0), int(epoch or 0))
            for resource, value in zip(resources, trimmed, strict=True)
        }
        return _assemble(positions, found, floors)


def _streams(reply: Any) -> list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]:
    if not reply:
        return []
    return list(reply.items()) if isinstance(reply, dict) else list(reply)


def _assemble(
    positions: Mapping[Resource, int],
    found: Mapping[Resource, list[tuple[bytes, dict[bytes, bytes]]]],
    floors: Mapping[Resource, int],
) -> Changes:
    entries: list[Change] = []
    gone = set()
    reached = dict(positions)
    for resource, position in positions.items():
        changes = [_change(resource, *entry) for entry in found.get(resource, ())]
        newest = _id_number(found[resource][-1][0]) if resource in found else position
        if position < floors[resource] or newest > MAX_ID:
            gone.add(resource)
            continue
        reached[resource] = newest
        entries += [change for change in changes if change is not None]
    return Changes(entries, frozenset(gone), reached)


def _id_number(entry_id: bytes) -> int:
    return int(entry_id.partition(b"-")[0])


def _change(
    resource: Resource, entry_id: bytes, fields: dict[bytes, bytes] | None
) -> Change | None:
    if not fields or not {b"type", b"key", b"object"} <= fields.keys():
        return None
    number, _, sequence = entry_id.partition(b"-")
    event = fields[b"type"].decode("utf-8", "replace")
    if sequence != b"0" or event not in _TYPES:
        return None
    return Change(
        resource,
        int(number),
        cast(ChangeType, event),
        fields[b"key"].decode("utf-8", "replace"),
        fields[b"object"],
    )
