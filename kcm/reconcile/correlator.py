"""Decides which Events become new objects, which increase a count, and which are dropped.

These are upstream's three rules, in its order. Events that differ only in their message are
combined, from the tenth one on within ten minutes. A repeated Event increases the count of the
existing one. A source may record 25 Events about one object at once, and one every five minutes
after that. Memory is bounded: entries that decide nothing any more are forgotten, and the least
recently used ones.

Source: staging/src/k8s.io/client-go/tools/record/events_cache.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from kcm.clock import Clock

K = TypeVar("K")
V = TypeVar("V")

MAX_ENTRIES = 4096  # the most sources, groups and Events that are remembered, each
SPAM_BURST = 25  # Events of one source about one object that pass at once
SPAM_QPS = 1 / 300  # Events per second that pass after that: one in five minutes
AGGREGATE_AFTER = 10  # different messages of one reason from which on they are combined
AGGREGATE_WITHIN = 600.0  # the longest time between two of them, in seconds
# Seconds until an Event that is not repeated is forgotten: its next occurrence is a new Event.
# Upstream remembers the last 4,096, however old they are.
REPEATED_WITHIN = 1800.0
_LEAST_SWEPT = 256  # values, before a mapping looks which are over, at least
COMBINED = "(combined from similar events): "


class ExpiringMapping(Generic[K, V]):
    """A mapping of bounded size, whose entries are gone after some time. Not thread-safe.

    It forgets the least recently used entries when there are too many.
    """

    def __init__(self, clock: Clock, size: int = MAX_ENTRIES) -> None:
        self._clock = clock
        self._size = size
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()  # with the time of its end
        self._puts_left = _LEAST_SWEPT  # before it looks which values are over

    def get(self, key: K) -> V | None:
        """Returns the value that was put last, None if its time is over."""
        entry = self._entries.get(key)
        if entry is None or entry[1] < self._now():
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, lasting: float) -> None:
        """Keeps the value for this many seconds."""
        self._entries[key] = (value, self._now() + lasting)
        self._entries.move_to_end(key)
        self._puts_left -= 1
        if self._puts_left <= 0:
            self._forget_ended()
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def _forget_ended(self) -> None:
        """Forgets what is over. It looks again when as many values were put as are left, so the
        cost for a value is constant.
        """
        now = self._now()
        for key in [key for key, (_, end) in self._entries.items() if end < now]:
            del self._entries[key]
        self._puts_left = max(_LEAST_SWEPT, len(self._entries))

    def _now(self) -> float:
        return self._clock.now().timestamp()


@dataclass(frozen=True)
class Occurrence:
    """One Event as its source recorded it."""

    component: str
    about: tuple[str, str, str, str, str]  # apiVersion, kind, namespace, name, uid
    type: str
    reason: str
    message: str
    host: str = ""
    field_path: str = ""

    @property
    def source(self) -> tuple[str, ...]:
        return (self.component, self.host, *self.about)

    @property
    def group(self) -> tuple[str, ...]:
        return (*self.source, self.field_path, self.type, self.reason)


@dataclass(frozen=True)
class EventDecision:
    """How an occurrence is written. `identity` identifies the Event object."""

    identity: tuple[str, ...]
    message: str
    count: int  # 1 creates an Event, a higher count updates the existing one


@dataclass
class _Bucket:
    tokens: float
    at: float


class EventCorrelator:
    """Decides on occurrences one after the other. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # The messages of similar Events.
        self._groups: ExpiringMapping[tuple[str, ...], set[str]] = ExpiringMapping(clock)
        self._counts: ExpiringMapping[tuple[str, ...], int] = ExpiringMapping(clock)
        self._buckets: ExpiringMapping[tuple[str, ...], _Bucket] = ExpiringMapping(clock)

    def correlate(self, seen: Occurrence) -> EventDecision | None:
        """Returns how to write this occurrence, or None if it is dropped as spam."""
        identity, message = self._aggregate(seen)
        count = (self._counts.get(identity) or 0) + 1
        self._counts.put(identity, count, REPEATED_WITHIN)
        if not self._allows(seen.source):
            return None
        return EventDecision(identity, message, count)

    def forget(self, identity: tuple[str, ...]) -> None:
        """Forgets an Event object that does not exist, so that its next occurrence creates one."""
        self._counts.put(identity, 0, REPEATED_WITHIN)

    def _aggregate(self, seen: Occurrence) -> tuple[tuple[str, ...], str]:
        messages = self._groups.get(seen.group)
        if messages is None:
            messages = set()
        self._groups.put(seen.group, messages, AGGREGATE_WITHIN)
        messages.add(seen.message)
        if len(messages) < AGGREGATE_AFTER:
            return (*seen.group, seen.message), seen.message
        messages.pop()  # bounds the set: one message is dropped for each that is added
        return seen.group, COMBINED + seen.message

    def _allows(self, source: tuple[str, ...]) -> bool:
        now = self._clock.now().timestamp()
        bucket = self._buckets.get(source) or _Bucket(SPAM_BURST, now)
        bucket.tokens = min(SPAM_BURST, bucket.tokens + (now - bucket.at) * SPAM_QPS)
        bucket.at = now
        is_allowed = bucket.tokens >= 1
        if is_allowed:
            bucket.tokens -= 1
        # A full bucket says no more than none.
        self._buckets.put(source, bucket, (SPAM_BURST - bucket.tokens) / SPAM_QPS)
        return is_allowed
