"""What this process's informers did, counted for metrics."""

from __future__ import annotations

import threading
from collections import Counter

from kcm.informers.observer import FailedStep, Observer


class CountingObserver(Observer):
    """Counts; `snapshot` is what the metrics show."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[tuple[str, ...]]] = {}

    def _add(self, what: str, *labels: str, amount: float = 1) -> None:
        with self._lock:
            # Counter's stubs know whole numbers only; seconds are added, too.
            self._counts.setdefault(what, Counter())[labels] += amount  # type: ignore[assignment]

    def listed(self, kind: str, items: int, seconds: float) -> None:
        self._add("lists", kind)
        self._add("list_seconds", kind, amount=seconds)

    def watched(self, kind: str, entries: int) -> None:
        self._add("watched", kind, amount=entries)

    def failed(self, kind: str, step: FailedStep, error: Exception) -> None:
        self._add("failures", kind or "(all)", step)

    def handler_crashed(self, kind: str, handler: str, error: Exception) -> None:
        self._add("panics", f"{kind}/{handler}")

    def handler_overflowed(self, kind: str, handler: str) -> None:
        self._add("overflows", kind, handler)

    def snapshot(self, what: str) -> dict[tuple[str, ...], float]:
        """Labels to count of lists, list_seconds, watched, failures, panics or overflows."""
        with self._lock:
            return dict(self._counts.get(what, {}))
