"""Measures how long the event loop does nothing else: its stalls.

A tick that comes late shows a stall: some callback computed for so long, or other threads held the
interpreter. Ticks come only while requests do, so that an idle server sleeps. A stall is measured
up to `TICK` seconds too short.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import structlog
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

log = structlog.get_logger("kcm.apiserver")

TICK = 0.01  # seconds between ticks
REMARKABLE = 0.25  # seconds of a stall that is logged
_REST_AFTER = 1.0  # seconds after the last request until the ticks stop
_PERIOD = 60.0  # seconds; the longest stall is that of the last one or two of them
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class StallMeter:
    """Measures the stalls of one event loop. Only `collect` may be called in other threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._histogram = Histogram(
            "kcm_apiserver_event_loop_stall_seconds",
            "Seconds for which the event loop came to nothing else, measured every 10 ms.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self._timer: asyncio.TimerHandle | None = None
        self._wanted_until = 0.0  # on the loop's clock
        self._longest: tuple[float, float] = (0.0, 0.0)  # of the present and the last period
        self._period_began = time.monotonic()
        self._suspect: tuple[float, str] = (0.0, "")  # the longest step since the last tick
        registry.register(self)

    def note_request(self) -> None:
        """Lets ticks come for a while, since a request has come."""
        loop = asyncio.get_running_loop()
        self._wanted_until = loop.time() + _REST_AFTER
        if self._timer is None:
            self._schedule(loop)

    def note_step(self, request: str, seconds: float) -> None:
        """Notes for how long a request computed in the event loop without giving way."""
        if seconds > self._suspect[0]:
            self._suspect = (seconds, request)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + TICK
        self._timer = loop.call_at(due, self._tick, loop, due)

    def _tick(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = loop.time()
        self._observe(max(now - due, 0.0))
        if now < self._wanted_until:
            self._schedule(loop)
        else:
            self._timer = None

    def _observe(self, stall: float) -> None:
        self._histogram.observe(stall)
        self._turn_period()
        present, last = self._longest
        self._longest = (max(present, stall), last)
        (step, request), self._suspect = self._suspect, (0.0, "")
        if stall >= REMARKABLE:
            blamed = {"request": request} if step >= stall / 2 else {}
            log.warning("The event loop was held up", seconds=round(stall, 3), **blamed)

    def _turn_period(self) -> None:
        periods = int((time.monotonic() - self._period_began) / _PERIOD)
        if periods:
            self._longest = (0.0, self._longest[0] if periods == 1 else 0.0)
            self._period_began += periods * _PERIOD

    def collect(self) -> Iterator[Metric]:
        """Yields the longest stall of the last one to two minutes."""
        age = time.monotonic() - self._period_began
        present, last = self._longest
        longest = max(present, last) if age < _PERIOD else present if age < 2 * _PERIOD else 0.0
        yield GaugeMetricFamily(
            "kcm_apiserver_event_loop_longest_stall_seconds",
            "The longest stall of the event loop in the last one to two minutes.",
            value=longest,
        )
