"""Log lines about what hostile clients cause, so that they cannot fill the log."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

EVERY = 60.0  # seconds between two lines about the same
_MOST = 1000  # names that are remembered


class Notices:
    """Says when to log something about a name: at once, and then once a minute at most."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._since: OrderedDict[str, tuple[float, int]] = OrderedDict()  # the last line, and more

    def count(self, name: str) -> int | None:
        """Counts once more. Returns how often since the last line if one is due, otherwise None."""
        now = self._now()
        last, more = self._since.get(name, (now - EVERY, 0))
        if now - last < EVERY:
            self._since[name] = last, more + 1
            return None
        self._since[name] = now, 0
        self._since.move_to_end(name)
        if len(self._since) > _MOST:
            self._since.popitem(last=False)
        return more + 1
