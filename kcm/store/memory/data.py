"""The data of a server in memory, with the keys and values that the store has in Redis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from kcm.redisio import Keys

LogEntry = tuple[bytes, dict[bytes, bytes]]  # as XREAD returns it: the id, and the fields


@dataclass
class MemoryData:
    """Hashes, sets and streams by key. Sorted sets are sets here, since all scores are 0."""

    keys: Keys
    counter: int = 0  # of the resourceVersions
    hashes: defaultdict[str, dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))
    sets: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    streams: defaultdict[str, list[LogEntry]] = field(default_factory=lambda: defaultdict(list))

    def field(self, key: str, name: str) -> bytes | None:
        """Returns the value of a field of a hash, or None if there is none."""
        return self.hashes[key].get(name) if key in self.hashes else None

    def range(self, key: str, first: str, last: str) -> Iterator[str]:
        """Yields the members of a set from `first` to `last` in order.

        The bounds are as in ZRANGEBYLEX: "-", "+", or a text after "[" (inclusive) or "(".
        """
        for member in sorted(self.sets[key]) if key in self.sets else ():
            after = first == "-" or member > first[1:] or (first == f"[{member}")
            before = last == "+" or member < last[1:] or (last == f"[{member}")
            if after and before:
                yield member

    def read_log(self, key: str, after: int, count: int) -> list[LogEntry]:
        """Returns up to `count` entries of a stream with ids above `after`."""
        log = self.streams.get(key, [])
        return [entry for entry in log if int(entry[0].partition(b"-")[0]) > after][:count]
