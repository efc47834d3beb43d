"""Scripts of simulated calls in Redis: which calls take long, and which fail.

They are kept in the hash `scripts` by id, and the numbers of calls that are left in the hash
`left`. Every method raises StoreUnavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import uuid4

from kcm.reconcile.cloudprovider.sim.records import Script, read_record
from kcm.redisio import RedisIO

_MOST_DIGITS = 19  # Redis counts with 64 bits


class ScriptBook:
    """The scripts of one simulated service. Thread-safe."""

    def __init__(self, io: RedisIO, key: Callable[[str], str]) -> None:
        """`key` returns the name of the hash in Redis that is called `scripts` or `left` here."""
        self._io = io
        self._scripts, self._counts = key("scripts"), key("left")

    def list(self) -> dict[str, tuple[Script, int | None]]:
        """Returns the scripts by id, each with the number of calls that are left, None if that is
        not limited.
        """
        scripts = self._read()
        left = self._left() if any(script.limited for script in scripts.values()) else {}
        return {
            name: (script, left.get(name, 0) if script.limited else None)
            for name, script in scripts.items()
        }

    def add(self, script: Script, times: int | None) -> str:
        """Adds a script for `times` calls, None for all. Returns its id."""
        name = uuid4().hex[:8]
        if times is not None:
            self._io.execute("HSET", self._counts, name, times)
        stored = script.model_copy(update={"limited": times is not None})
        self._io.execute("HSET", self._scripts, name, stored.model_dump_json())
        return name

    def clear(self) -> None:
        """Removes all scripts."""
        self._io.execute("DEL", self._scripts, self._counts)

    def take(self, call: str, *about: str) -> Script | None:
        """Returns the script that applies to a call about these objects, None if there is none, and
        counts the call.
        """
        for name, script in self._read().items():
            if not script.applies_to(call, *about):
                continue
            if not script.limited:
                return script
            left = self._count_down(name)
            if left <= 0:
                self._io.execute("HDEL", self._scripts, name)
                self._io.execute("HDEL", self._counts, name)
            if left >= 0:
                return script
        return None

    def _read(self) -> dict[str, Script]:
        entries = self._io.execute("HGETALL", self._scripts)
        scripts = (
            (name.decode(errors="replace"), read_record(Script, text))
            for name, text in entries.items()
        )
        return dict(sorted((name, script) for name, script in scripts if script is not None))

    def _left(self) -> Mapping[str, int]:
        entries = self._io.execute("HGETALL", self._counts)
        return {name.decode(errors="replace"): _parse_count(text) for name, text in entries.items()}

    def _count_down(self, name: str) -> int:
        """Counts a call; returns how many are left, less than 0 if none was."""
        if not _parse_count(self._io.execute("HGET", self._counts, name) or b""):
            return -1
        return int(self._io.execute("HINCRBY", self._counts, name, -1))


def _parse_count(text: bytes) -> int:
    """Returns a number of calls that are left, 0 for anything else."""
    return int(text) if text.isdigit() and len(text) < _MOST_DIGITS else 0
