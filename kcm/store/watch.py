"""The watch: reads the streams of several kinds with one blocking call (design 0020).

Guarantees: a reader that continues from the resourceVersion of a list gets every later change of
the kind once and in order, or learns that its position is `gone` (410), because entries after it
were trimmed, the server was promoted, restarted or emptied (design 0003), or the stream was set
aside or deleted. Entries that kcm did not write are skipped. `trim` removes what is too old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal, cast, get_args

import structlog

from kcm import errors
from kcm.api.scheme import Resource
from kcm.redisio import RedisIO
from kcm.redisio.keys import Keys

log = structlog.get_logger("kcm.store")

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

MAX_ID = 1 << 52  # a greater id is not kcm's, see store_write.lua
_TYPES = frozenset(get_args(ChangeType)) - {"BOOKMARK"}
_LOG_TYPES = (b"stream", b"none")
_COUNT = 1000  # entries per stream and read: bounds the reply
_MOST_SETS = 64  # sets of kinds of which something is kept; each controller reads its own
_TRIMMED_WHEN = "*"  # the field that changes whenever another field does


@dataclass(frozen=True, slots=True)
class WatchEntry:
    """One entry of a watch log."""

    resource: Resource
    resource_version: int
    type: ChangeType
    key: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Changes:
    """The results of one read, in order per resource.

    `gone` are the resources that must be listed again; `positions` are those from which to
    continue. `newest` are the resourceVersions of the last writes at the end of the read, 0 if
    unknown.
    """

    entries: Sequence[WatchEntry] = ()
    gone: frozenset[Resource] = frozenset()
    positions: Mapping[Resource, int] = field(default_factory=dict)
    newest: Mapping[Resource, int] = field(default_factory=dict)


class WatchReader:
    """Reads watch logs for one reader, which keeps the positions."""

    def __init__(self, io: RedisIO) -> None:
        self._io = io
        self._floors = _Floors()
        self._kinds: dict[tuple[str, ...], _Kinds] = {}  # by the names of those read together
        # Resources whose last read ended before their newest write: the resourceVersions of the
        # end of the read and of that write. `_reported` has those that were reported as lost.
        self._ends: Mapping[Resource, tuple[int, int]] = {}
        self._reported: dict[Resource, tuple[int, int]] = {}
        self._unreadable: set[Resource] = set()  # those whose watch log has another type

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Returns the changes after `positions`, after a wait of up to `block_ms` milliseconds.

        `Changes.gone` are the resources that must be listed again: all of them when a new epoch has
        begun. A resource whose watch log has a wrong type is left out and logged; where all of them
        have one, it raises WrongTypeOfKey. Raises: StoreUnavailable.
        """
        try:
            changes = self._read(positions, block_ms)
        except errors.WrongTypeOfKey:
            readable = self._leave_out_unreadable(positions)
            if not readable or len(readable) == len(positions):
                raise
            return self._read(readable, block_ms)
        self._unreadable = set()
        return changes

    def _leave_out_unreadable(self, positions: Mapping[Resource, int]) -> Mapping[Resource, int]:
        """Returns the positions of resources with a readable watch log. Logs the others once."""
        names = {resource: self._io.keys.watch(resource.name) for resource in positions}
        types = self._io.pipeline_each([("TYPE", name) for name in names.values()])
        wrong = {r for r, reply in zip(names, types, strict=True) if reply not in _LOG_TYPES}
        for resource in wrong - self._unreadable:
            log.error(
                "A watch log is not read, since another program has put another type in its place; "
                "delete it with `kcm redis-cli DEL KEY`",
                key=names[resource],
            )
        self._unreadable = wrong
        return {resource: at for resource, at in positions.items() if resource not in wrong}

    def _read(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        resources = tuple(positions)
        kinds = self._find_kinds(tuple(resource.name for resource in resources))
        ids = [f"{position}-0" for position in positions.values()]
        block = ("BLOCK", block_ms) if block_ms else ()
        # The checks follow the blocking read in one round trip, so they see the state after it.
        read, trimmed, written, *epoch = self._io.pipeline(
            [
                ("XREAD", "COUNT", _COUNT, *block, "STREAMS", *kinds.logs, *ids),
                ("HGET", self._io.keys.trimmed(), _TRIMMED_WHEN),
                ("HMGET", self._io.keys.last_rv(), *kinds.names),
                *self._io.epoch_reads(),
            ]
        )
        start = self._io.in_epoch(*epoch)
        if start is None:
            return Changes((), frozenset(positions), dict(positions))
        floors = self._floors
        if floors.when != trimmed:  # otherwise nothing was trimmed since
            floors = self._floors = self._read_floors()
        streams = {resources[kinds.places[name]]: entries for name, entries in _streams(read)}
        changes = _assemble(positions, streams, floors, start)
        newest = dict(zip(resources, kinds.parse_newest(written), strict=True))
        gone = changes.gone | self._lost_logs(changes.positions, newest)
        return replace(changes, gone=gone, newest=newest)

    def _find_kinds(self, names: tuple[str, ...]) -> _Kinds:
        """Returns what is kept of a read of these kinds; most readers read the same ones again."""
        kinds = self._kinds.get(names)
        if kinds is None:
            if len(self._kinds) >= _MOST_SETS:
                self._kinds.clear()
            kinds = self._kinds[names] = _Kinds(names, self._io.keys)
        return kinds

    def _lost_logs(
        self, positions: Mapping[Resource, int], newest: Mapping[Resource, int]
    ) -> set[Resource]:
        """Returns the resources whose watch log was deleted.

        Their newest write is after a position from which two reads returned nothing. One read is
        not enough, since it may have come before the write. Each loss is reported once, so that its
        reader does not list again and again.
        """
        ends = {r: (at, newest[r]) for r, at in positions.items() if at < newest[r]}
        lost = {r for r, end in ends.items() if self._ends.get(r, (-1, 0))[0] == end[0]}
        lost -= {r for r in lost if self._reported.get(r) == ends[r]}
        self._ends = {r: end for r, end in self._ends.items() if r not in positions} | ends
        self._reported |= {r: ends[r] for r in lost}
        return lost

    def _read_floors(self) -> _Floors:
        raw = self._io.execute("HGETALL", self._io.keys.trimmed())
        fields: dict[bytes, bytes] = dict(raw)
        when = fields.pop(_TRIMMED_WHEN.encode(), None)
        floors = {name.decode("utf-8", "replace"): parse_version(rv) for name, rv in fields.items()}
        return _Floors(when, floors)


class _Kinds:
    """Some kinds that are read together, and the last writes to them. There are some sixty, of
    which a read finds one or two changed, so only these are looked at. Only their names are kept,
    so that a kind that is gone leaves nothing.
    """

    def __init__(self, names: Sequence[str], keys: Keys) -> None:
        self.names = names
        self.logs = [keys.watch(name) for name in names]
        self.places = {log.encode(): place for place, log in enumerate(self.logs)}
        # What Redis said last, and what that means.
        self._written: Sequence[bytes | None] = [None] * len(names)
        self._newest = [0] * len(names)

    def parse_newest(self, written: Sequence[bytes | None]) -> Sequence[int]:
        """Returns the resourceVersions of the last writes, 0 for none or one that is not valid."""
        if written != self._written:
            for place, (text, before) in enumerate(zip(written, self._written, strict=True)):
                if text != before:
                    self._newest[place] = parse_version(text)
            self._written = written
        return self._newest


@dataclass(frozen=True)
class _Floors:
    """The resourceVersion up to which each watch log was trimmed, by the resource's name.

    `when` is the field _TRIMMED_WHEN at the time of reading.
    """

    when: bytes | None = b"never read"
    below: Mapping[str, int] = field(default_factory=dict)


def _streams(reply: Any) -> list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]:
    if not reply:
        return []
    return list(reply.items()) if isinstance(reply, dict) else list(reply)


def _assemble(
    positions: Mapping[Resource, int],
    streams: Mapping[Resource, list[tuple[bytes, dict[bytes, bytes]]]],
    floors: _Floors,
    epoch: int,
) -> Changes:
    """Returns the entries of one read by resource, and the resources whose positions are gone."""
    below = floors.below
    gone = {
        resource
        for resource, position in positions.items()
        if position < epoch or position < below.get(resource.name, 0) or position > MAX_ID
    }
    entries: list[WatchEntry] = []
    reached = dict(positions)
    for resource, listed in streams.items():
        newest = parse_id(listed[-1][0])
        if newest > MAX_ID:
            gone.add(resource)
        if resource in gone:
            continue
        reached[resource] = newest
        changes = [parse_entry(resource, *entry) for entry in listed]
        entries += [change for change in changes if change is not None]
    return Changes(entries, frozenset(gone), reached)


def parse_version(text: bytes | None) -> int:
    """Returns a resourceVersion, 0 if there is none or the text is not valid."""
    return int(text) if text and len(text) <= len(str(MAX_ID)) and text.isdigit() else 0


def parse_id(entry_id: bytes) -> int:
    """Returns the resourceVersion in the id of an entry."""
    return int(entry_id.partition(b"-")[0])


def parse_entry(
    resource: Resource, entry_id: bytes, fields: dict[bytes, bytes] | None
) -> WatchEntry | None:
    """Returns the watch entry, or None if kcm did not write it."""
    if not fields or not {b"type", b"key", b"object"} <= fields.keys():
        return None
    number, _, sequence = entry_id.partition(b"-")
    event = fields[b"type"].decode("utf-8", "replace")
    if sequence != b"0" or event not in _TYPES:
        return None
    return WatchEntry(
        resource,
        int(number),
        cast(ChangeType, event),
        fields[b"key"].decode("utf-8", "replace"),
        fields[b"object"],
    )


@dataclass(frozen=True)
class Retention:
    """How much of a watch log is kept."""

    age: timedelta = timedelta(minutes=5)  # upstream compacts etcd every five minutes
    entries: int = 200_000  # per resource; bounds memory when there are many writes between passes


def drop(io: RedisIO, name: str) -> None:
    """Empties the watch log of the resource `name`. Its readers have to list again."""
    age = int(Retention().age.total_seconds() * 1000)
    io.call("store_trim", age, 0, name, call_id="")


def trim(
    io: RedisIO, resources: Sequence[Resource], retention: Retention | None = None
) -> dict[str, int]:
    """Removes entries beyond the retention, and returns the number of removed entries per resource.

    The script learns the age of entries from earlier passes. A log keeps all entries from after the
    last pass that is older than the retention's age, so run several passes within that age.
    """
    retention = retention or Retention()
    names = [resource.name for resource in resources]
    age_ms = int(retention.age.total_seconds() * 1000)
    reply = io.call("store_trim", age_ms, retention.entries, *names, call_id="")
    return {name: int(count) for name, count in zip(names, reply[1:], strict=True)}
