"""Counts and durations of syncs and passes, summed over all processes.

Each pool child and each host sees only a part, so the sums are in one Redis hash, to which every
process adds its part once a second, in one call. Recording never blocks on Redis. A batch whose
reply was lost is not added twice within a minute. What a killed process counted in its last second
may be lost.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from kcm import errors
from kcm.loops import Loop, Turn
from kcm.redisio import RedisIO
from kcm.redisio.connection import new_call_id

log = structlog.get_logger(__name__)

FLUSH_EVERY = 1.0  # seconds
# Upper bounds in seconds, those of controller-runtime's controller_runtime_reconcile_time_seconds.
BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7),
    *(0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0),
    *(10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
SYNC, PASS = "reconcile", "tick"
COUNT = "count"


@dataclass(frozen=True)
class Totals:
    """The sums of all processes for one controller's syncs, or one loop's passes."""

    results: Mapping[str, int]
    # per bucket, not cumulative; the last bucket holds everything above the bounds
    counts: tuple[int, ...]
    seconds: float


class SyncMetrics(Loop):
    """The part of the sums that one process adds. Thread-safe, except `flush`."""

    def __init__(self, io: RedisIO) -> None:
        super().__init__("kcm-metrics")
        self._io = io
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}
        self._unsent: tuple[str, dict[str, int]] | None = None

    def observe(self, kind: str, name: str, result: str, seconds: float) -> None:
        """Counts one sync of a controller (`kind` is SYNC) or one pass of a loop (PASS)."""
        bucket = bisect_left(BUCKETS, seconds)
        with self._lock:
            for counter, amount in (
                (f"{kind}|{name}|result|{result}", 1),
                (f"{kind}|{name}|bucket|{bucket}", 1),
                (f"{kind}|{name}|us|", round(seconds * 1e6)),
            ):
                self._seen[counter] = self._seen.get(counter, 0) + amount

    def add(self, counts: Mapping[str, int]) -> None:
        """Adds to the counters that controllers declare themselves."""
        with self._lock:
            for name, amount in counts.items():
                counter = f"{COUNT}|{name}"
                self._seen[counter] = self._seen.get(counter, 0) + amount

    def flush(self) -> None:
        """Adds this process's part to the sums. Raises Temporary; the next flush sends it again."""
        while True:
            if self._unsent is None:
                with self._lock:
                    seen, self._seen = self._seen, {}
                if not seen:
                    return
                self._unsent = (new_call_id(), seen)
            call_id, batch = self._unsent
            flat = [part for pair in batch.items() for part in pair]
            self._io.call("metrics_add", self._io.keys.metrics(), *flat, call_id=call_id)
            self._unsent = None

    def turn(self, patience: float) -> Turn:
        self._flush_contained()
        return Turn(upkeep_in=FLUSH_EVERY)

    def end(self) -> None:
        """Flushes once more."""
        self._flush_contained()

    def _flush_contained(self) -> None:
        try:
            self.flush()
        except errors.Temporary as error:
            log.debug("metrics are not written for now", error=str(error))
        except errors.KcmError as error:
            self._unsent = None
            log.warning("metrics were dropped", error=str(error))


def read_totals(io: RedisIO) -> dict[tuple[str, str], Totals]:
    """Returns all sums, by SYNC or PASS and the name of the controller or loop. Raises
    Temporary.
    """
    by_name: dict[tuple[str, str], _Sums] = {}
    for name, value in io.execute("HGETALL", io.keys.metrics()).items():
        what, _, rest = name.decode(errors="replace").partition("|")
        parts = rest.split("|")
        if what in (SYNC, PASS) and len(parts) == 3 and value.isdigit():
            by_name.setdefault((what, parts[0]), _Sums()).add(parts[1], parts[2], int(value))
    return {of: sums.totals() for of, sums in by_name.items() if sums.results}


def read_counts(io: RedisIO) -> dict[str, int]:
    """Returns the sums of the counters that controllers declare themselves. Raises Temporary."""
    counts: dict[str, int] = {}
    for name, value in io.execute("HGETALL", io.keys.metrics()).items():
        what, _, rest = name.decode(errors="replace").partition("|")
        if what == COUNT and value.isdigit():
            counts[rest] = int(value)
    return counts


@dataclass
class _Sums:
    results: dict[str, int] = field(default_factory=dict)
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    micros: int = 0

    def add(self, kind: str, name: str, value: int) -> None:
        if kind == "result":
            self.results[name] = value
        elif kind == "us":
            self.micros = value
        elif kind == "bucket" and name.isdigit() and int(name) < len(self.counts):
            self.counts[int(name)] = value

    def totals(self) -> Totals:
        return Totals(self.results, tuple(self.counts), self.micros / 1e6)
