"""Which Events become new objects, which raise a count, and which are dropped.

Upstream's three rules, in its order: Events that differ only in message are
combined from the tenth on within ten minutes; repeats raise the count of the
Event that exists; one source may tell of one object 25 times at once and then
once in five minutes. Memory is bounded: the least recently used is forgotten.

Source: staging/src/k8s.io/client-go/tools/record/events_cache.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kcm.clock import Clock

K = TypeVar("K")
V = TypeVar("V")

MAX_ENTRIES = 4096  # remembered sources, groups and Events each
SPAM_BURST = 25  # Events of one source about one object at once
SPAM_QPS = 1 / 300  # and then one in five minutes
AGGREGATE_AFTER = 10  # different messages of one reason
AGGREGATE_WITHIN = 600.0  # seconds between them at most
COMBINED = "(combined from similar events): "


class Recent(Generic[K, V]):
    """A mapping that forgets the least recently used entry beyond its size."""

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
    """One Event as its source reports it."""

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
class Verdict:
    """What to do with an occurrence: `identity` is that of the Event object to write."""

    identity: tuple[str, ...]
    message: str
    count: int  # 1: a new Event; more: raise the count of the one that exists


@dataclass
class _Group:
    last: float
    messages: set[str] = field(default_factory=set)


@dataclass
class _Bucket:
    tokens: float
    at: float


class EventCorrelator:
    """Decides on occurrences one after the other. Used by one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._groups: Recent[tuple[str, ...], _Group] = Recent()
        self._counts: Recent[tuple[str, ...], int] = Recent()
        self._buckets: Recent[tuple[str, ...], _Bucket] = Recent()

    def correlate(self, seen: Occurrence) -> Verdict | None:
        """What to write for this occurrence; None when it is dropped as spam."""
        now = self._clock.monotonic()
        identity, message = self._aggregate(seen, now)
        count = (self._counts.get(identity) or 0) + 1
        self._counts.put(identity, count)
        if not self._allowed(seen.source, now):
            return None
        return Verdict(identity, message, count)

    def forget(self, identity: tuple[str, ...]) -> None:
        """The Event object is gone: the next occurrence is a new Event."""
        self._counts.put(identity, 0)

    def _aggregate(self, seen: Occurrence, now: float) -> tuple[tuple[str, ...], str]:
        group = self._groups.get(seen.group)
        if group is None or now - group.last > AGGREGATE_WITHIN:
            group = self._groups.put(seen.group, _Group(now))
        group.last = now
        group.messages.add(seen.message)
        if len(group.messages) < AGGREGATE_AFTER:
            return (*seen.group, seen.message), seen.message
        group.messages.pop()  # bounded: one leaves for each further one that comes
        return seen.group, COMBINED + seen.message

    def _allowed(self, source: tuple[str, ...], now: float) -> bool:
        bucket = self._buckets.get(source) or self._buckets.put(source, _Bucket(SPAM_BURST, now))
        bucket.tokens = min(SPAM_BURST, bucket.tokens + (now - bucket.at) * SPAM_QPS)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
