"""Finds code that changes cached objects, which all readers share.

Guarantees: `check` reports every cached object whose encoding differs from that at its entry into
the cache, with the first field that differs. Does not find out which code changed it, nor changes
of objects that left the cache more than `RETAIN_SECONDS` ago. It encodes each object in every
check, so it is for tests and for debugging.

Source: client-go `tools/cache/mutation_detector.go`, Kubernetes 1.33 (there only objects of the
last minutes are checked; here all that are cached).
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock

RETAIN_SECONDS = 120.0  # how long an object is checked after it left the cache
ABSENT = "<absent>"


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one cached object; `before` and `after` are the JSON values of the field."""

    kind: str
    key: str
    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return (
            f"cached {self.kind} {self.key} was mutated: "
            f"{self.field} was {self.before!r}, is {self.after!r}"
        )


@dataclass(frozen=True, slots=True)
class _Snapshot:
    key: str
    obj: KubeObject
    encoded: bytes


class CacheMutationDetector:
    """Keeps the encodings of cached objects, and compares them with the objects."""

    def __init__(self, kind: str, encode: Callable[[KubeObject], bytes], clock: Clock) -> None:
        self._kind = kind
        self._encode = encode
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: dict[str, _Snapshot] = {}
        self._left: deque[tuple[float, _Snapshot]] = deque()

    def add_object(self, key: str, obj: KubeObject) -> None:
        """Begins to check an object that enters the cache. The one that it replaces is checked for
        a while.
        """
        snapshot = _Snapshot(key, obj, self._encode(obj))
        with self._lock:
            self._leave(key)
            self._cached[key] = snapshot

    def remove_object(self, key: str) -> None:
        """Records that the object left the cache. It is checked for a while."""
        with self._lock:
            self._leave(key)

    def check(self) -> list[Mutation]:
        """Returns all mutations. The next check returns them again."""
        with self._lock:
            self._forget_old()
            snapshots = [*self._cached.values(), *(snapshot for _, snapshot in self._left)]
        mutations = (self._compare(snapshot) for snapshot in snapshots)
        return [mutation for mutation in mutations if mutation is not None]

    def _leave(self, key: str) -> None:
        old = self._cached.pop(key, None)
        if old is not None:
            self._left.append((self._clock.monotonic(), old))

    def _forget_old(self) -> None:
        oldest = self._clock.monotonic() - RETAIN_SECONDS
        while self._left and self._left[0][0] < oldest:
            self._left.popleft()

    def _compare(self, snapshot: _Snapshot) -> Mutation | None:
        encoded = self._encode(snapshot.obj)
        if encoded == snapshot.encoded:
            return None
        field, before, after = _first_difference(json.loads(snapshot.encoded), json.loads(encoded))
        return Mutation(self._kind, snapshot.key, field, before, after)


def _first_difference(before: Any, after: Any, path: str = "") -> tuple[str, Any, Any]:
    """Returns the path of the first field that differs, and its two values.

    A path has the form `spec.containers[0].image`.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for name in (*before, *(name for name in after if name not in before)):
            one, other = before.get(name, ABSENT), after.get(name, ABSENT)
            if one != other:
                return _first_difference(one, other, f"{path}.{name}" if path else name)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            if one != other:
                return _first_difference(one, other, f"{path}[{index}]")
    return path, before, after
