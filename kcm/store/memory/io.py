"""Commands and scripts of Redis that the store needs, on data in memory.

Guarantees: a `Store` on it behaves as on a server that has no fault: every write has the checks and
effects of kcm/redisio/lua/store_write.lua. The integration tests of the store run on both. Does not
guarantee anything to several threads. Reads never wait, nothing is trimmed or damaged, and there
are no queues, leases and event bus: a command or script of theirs raises LookupError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcm.clock import Clock
from kcm.redisio import Keys, RedisIO
from kcm.redisio.commands import Argument
from kcm.settings import Settings
from kcm.store.memory.data import MemoryData
from kcm.store.memory.limiters import set_limits
from kcm.store.memory.writing import write_objects


class MemoryIO(RedisIO):
    """A `RedisIO` without a server. The time of its scripts is that of `clock`."""

    def __init__(self, clock: Clock, settings: Settings | None = None) -> None:
        # The base class would open a client of the driver.
        self.settings = settings or Settings()
        self.name = "memory"
        self.keys = Keys(self.settings.prefix)
        self.epoch = self.data_id = "1"
        self.term = ""
        self._clock = clock
        self._data = MemoryData(self.keys)
        self._data.hashes[self.keys.meta()] = {"epoch": b"1", "epoch_start": b"0"}
        self._data.hashes[self.keys.last_rv()] = {"*": b"1"}

    def now(self) -> float:
        return self._clock.now().timestamp()

    def counter(self) -> int:
        return self._data.counter

    def set_counter(self, version: int) -> None:
        """Makes the next write have the resourceVersion after `version`."""
        self._data.counter = version

    def attach(self) -> None:
        """Does nothing, since the epoch never changes."""

    def epoch_reads(self) -> list[Sequence[Argument]]:
        return []

    def in_epoch(self, *replies: Any) -> int:
        return 0

    def drop(self) -> None:
        """Does nothing, since there is no connection."""

    def close(self) -> None:
        """Does nothing, since there is no connection."""

    def call(self, name: str, *args: Argument, call_id: str | None = None) -> list[str]:
        """Runs a script, and returns its reply. No reply is ever lost, so call ids are ignored."""
        match name:
            case "store_write":
                return write_objects(self._data, self.now(), args)
            case "limiter_set":
                return set_limits(self._data, self.now(), args)
        raise LookupError(f"a server in memory has no script {name}")

    def pipeline(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        return [self.execute(*command) for command in commands]

    def pipeline_each(
        self, commands: Sequence[Sequence[Argument]], *, at_once: bool = False
    ) -> list[Any]:
        return self.pipeline(commands)

    def execute(self, *command: Argument) -> Any:
        """Returns the reply to a command as the driver parses it. Raises LookupError for another
        command than the store's.
        """
        name, key, *args = (str(part) for part in command)
        data = self._data
        match name:
            case "HGET":
                return data.field(key, args[0])
            case "HMGET":
                return [data.field(key, field) for field in args]
            case "HGETALL":
                return {field.encode(): value for field, value in data.hashes[key].items()}
            case "HSET":
                data.hashes[key][args[0]] = args[1].encode()
                return 1
            case "EXISTS":
                return int(key in data.hashes)
            case "ZSCORE":
                return 0.0 if args[0] in data.sets[key] else None
            case "SCARD" | "ZCARD":
                return len(data.sets[key])
            case "SMEMBERS":
                return {member.encode() for member in data.sets[key]}
            case "ZRANGEBYLEX":
                first, last, _, _, count = args
                return [m.encode() for m in data.range(key, first, last)][: int(count)]
            case "XREAD":
                return self._read_logs(int(args[0]), args[args.index("STREAMS") + 1 :])
        raise LookupError(f"a server in memory has no command {name}")

    def _read_logs(self, count: int, wanted: Sequence[str]) -> list[tuple[bytes, list[Any]]]:
        """Returns the entries of the streams after the ids that follow their names."""
        half = len(wanted) // 2
        replies = []
        for name, position in zip(wanted[:half], wanted[half:], strict=True):
            entries = self._data.read_log(name, int(position.partition("-")[0]), count)
            if entries:
                replies.append((name.encode(), entries))
        return replies
