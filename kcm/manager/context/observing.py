"""Counts the steps and failures of this process's informers, for its metrics."""

from __future__ import annotations

import threading
from collections import Counter

from kcm.informers.observer import FailedStep, Observer


class CountingObserver(Observer):
    """Counts what informers report. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[tuple[str, ...]]] = {}

    def _add(self, metric: str, *labels: str, amount: float = 1) -> None:
        with self._lock:
            # The stubs of Counter know whole numbers only, and seconds are added as well.
            self._counts.setdefault(metric, Counter())[labels] += amount  # type: ignore[assignment]

    def on_list(self, kind: str, items: int, seconds: float) -> None:
        self._add("lists", kind)
        self._add("list_seconds", kind, amount=seconds)

    def on_watch(self, kind: str, entries: int) -> None:
        self._add("watched", kind, amount=entries)

    def on_failure(self, kind: str, step: FailedStep, error: Exception) -> None:
        self._add("failures", kind or "(all)", step)

    def on_handler_crash(self, kind: str, handler: str, error: Exception) -> None:
        self._add("panics", f"{kind}/{handler}")

    def on_handler_overflow(self, kind: str, handler: str) -> None:
        self._add("overflows", kind, handler)

    def snapshot(self, metric: str) -> dict[tuple[str, ...], float]:
        """Returns the counts of a metric by label values.

        `metric` is one of lists, list_seconds, watched, failures, panics and overflows.
        """
        with self._lock:
            return dict(self._counts.get(metric, {}))
