"""The changes of one kind that watches and lists may begin with; part of the watch cache."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kcm import errors
from kcm.apiserver.cache.entries import CacheEvent

HISTORY = 10_000  # changes that are kept for watches that start at an earlier version
HISTORY_BYTES = 40_000_000  # bytes of JSON in them: 10,000 pods, or some hundred large definitions
# bytes of JSON in the newest changes, which stay decoded and take five times that
DECODED_BYTES = 4_000_000
AGE_EVERY = 30.0  # seconds between calls of `age`
# Calls of `age` after which a change is forgotten: a little later than Redis' logs forget theirs,
# and than tokens of lists end, which is after five minutes.
_AGES = 11


class History:
    """Changes after the version `oldest`, the oldest first. It is not thread-safe."""

    def __init__(self, most: int = HISTORY, most_bytes: int = HISTORY_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._events: deque[CacheEvent] = deque()
        self._bytes = 0
        self._decoded: deque[CacheEvent] = deque()  # the newest of them
        self._decoded_bytes = 0
        self._ages: deque[int] = deque()  # the versions at the last calls of `age`
        self.oldest = 0
        self.whole = 0  # changes after this version have the objects as they were before

    def restart(self, version: int) -> None:
        """Forgets all changes. Those that come are after `version`."""
        self._events.clear()
        self._decoded.clear()
        self._bytes = self._decoded_bytes = 0
        self.oldest = self.whole = version

    def add(self, event: CacheEvent, *, knows_before: bool = True) -> None:
        """Adds a change. `knows_before` says whether it has the object as it was before, if there
        was one.
        """
        if not knows_before:
            self.whole = event.entry.version
        self._events.append(event)
        self._bytes += event.size
        self._decoded.append(event)
        self._decoded_bytes += event.size
        while len(self._events) > self._most or self._bytes > self._most_bytes:
            self._forget()
        while self._decoded_bytes > DECODED_BYTES:
            self._forget_decoded()

    def age(self, version: int) -> None:
        """Forgets what has become too old. `version` is that of the last change."""
        self._ages.append(version)
        if len(self._ages) > _AGES:
            last = self._ages.popleft()
            while self._events and self._events[0].entry.version <= last:
                self._forget()

    def _forget(self) -> None:
        event = self._events.popleft()
        self._bytes -= event.size
        self.oldest = event.entry.version
        self.whole = max(self.whole, self.oldest)
        if self._decoded and self._decoded[0] is event:
            self._forget_decoded()

    def _forget_decoded(self) -> None:
        event = self._decoded.popleft()
        self._decoded_bytes -= event.size
        event.forget_decoded()

    def list_after(self, version: int, *, needs_before: bool) -> Iterator[CacheEvent]:
        """Returns the changes after `version`, the newest first. Raises Gone if some are missing.

        Whoever `needs_before` must know what the objects were before.
        """
        oldest = self.whole if needs_before else self.oldest
        if version < oldest:
            raise errors.Gone(f"too old resource version: {version} ({oldest})")
        return self._walk_back(version)

    def _walk_back(self, version: int) -> Iterator[CacheEvent]:
        for event in reversed(self._events):
            if event.entry.version <= version:
                return
            yield event

    def version_before(self, changes: int) -> int:
        """Returns the version so many changes ago, at least `whole`."""
        if changes >= len(self._events):
            return self.whole
        return max(self.whole, self._events[-changes - 1].entry.version)
