"""Decides which Events become new objects, which increase a count, and which are dropped.

These are upstream's three rules, in its order. Events that differ only in their message are
combined, from the tenth one on within ten minutes. A repeated Event increases the count of the
existing one. A source may record 25 Events about one object at once, and one every five minutes
after that. Memory is bounded: the least recently used entries are forgotten.

Source: staging/src/k8s.io/client-go/tools/record/events_cache.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kcm.clock import Clock

K = TypeVar("K")
V = TypeVar("V")

MAX_ENTRIES = 4096  # the most sources, groups and Events that are remembered, each
SPAM_BURST = 25  # Events of one source about one object that pass at once
SPAM_QPS = 1 / 300  # Events per second that pass after that: one in five minutes
AGGREGATE_AFTER = 10  # different messages of one reason from which on they are combined
AGGREGATE_WITHIN = 600.0  # the longest time between two of them, in seconds
COMBINED = "(combined from similar events): "


class LRUMapping(Generic[K, V]):
    """A mapping of bounded size that forgets the least recently used entries."""

    def __init__(self, size: int = MAX_ENTRIES) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: K, value: V) -> V:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
        return value


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
class _SimilarEvents:
    last: float
    messages: set[str] = field(default_factory=set)


@dataclass
class _Bucket:
    tokens: float
    at: float


class EventCorrelator:
    """Decides on occurrences one after the other. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._groups: LRUMapping[tuple[str, ...], _SimilarEvents] = LRUMapping()
        self._counts: LRUMapping[tuple[str, ...], int] = LRUMapping()
        self._buckets: LRUMapping[tuple[str, ...], _Bucket] = LRUMapping()

    def correlate(self, seen: Occurrence) -> EventDecision | None:
        """Returns how to write this occurrence, or None if it is dropped as spam."""
        now = self._clock.now().timestamp()
        identity, message = self._aggregate(seen, now)
        count = (self._counts.get(identity) or 0) + 1
        self._counts.put(identity, count)
        if not self._allows(seen.source, now):
            return None
        return EventDecision(identity, message, count)

    def forget(self, identity: tuple[str, ...]) -> None:
        """Forgets an Event object that does not exist, so that its next occurrence creates one."""
        self._counts.put(identity, 0)

    def _aggregate(self, seen: Occurrence, now: float) -> tuple[tuple[str, ...], str]:
        group = self._groups.get(seen.group)
        if group is None or now - group.last > AGGREGATE_WITHIN:
            group = self._groups.put(seen.group, _SimilarEvents(now))
        group.last = now
        group.messages.add(seen.message)
        if len(group.messages) < AGGREGATE_AFTER:
            return (*seen.group, seen.message), seen.message
        group.messages.pop()  # bounds the set: one message is dropped for each that is added
        return seen.group, COMBINED + seen.message

    def _allows(self, source: tuple[str, ...], now: float) -> bool:
        bucket = self._buckets.get(source) or self._buckets.put(source, _Bucket(SPAM_BURST, now))
        bucket.tokens = min(SPAM_BURST, bucket.tokens + (now - bucket.at) * SPAM_QPS)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
