"""The memory of a controller about a key, kept in Redis from one sync to the next.

The next sync of the key, by any worker, sees what the last one saved. Only the holder of the key
changes it. It may be lost when the server loses data, so it must hold only what can be computed
again.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm import errors
from kcm.redisio import Fence, RedisIO


class Memory:
    """Reads and writes the memory of one controller."""

    def __init__(self, io: RedisIO, controller: str) -> None:
        self._io = io
        self._controller = controller

    def load(self, key: str) -> dict[str, str]:
        """Returns what the last sync of the key saved. Raises Temporary."""
        entries = self._io.execute("HGETALL", self._io.keys.memory(self._controller, key))
        return {name.decode(): value.decode() for name, value in entries.items()}

    def save(
        self, key: str, before: Mapping[str, str], after: Mapping[str, str], fence: Fence
    ) -> None:
        """Saves `after` in place of `before`, which `load` returned. Raises Fenced and
        Temporary.
        """
        gone = [name for name in before if name not in after]
        changed = [p for pair in after.items() if before.get(pair[0]) != pair[1] for p in pair]
        if not gone and not changed:
            return
        where = self._io.keys.memory(self._controller, key)
        reply = self._io.call("memory_save", *fence.args(), where, len(gone), *gone, *changed)
        if reply[0] == "FENCED":
            raise errors.Fenced(
                f"the memory of {key} was not saved: another sync has taken the key"
            )
