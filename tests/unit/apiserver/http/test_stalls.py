"""The measure of how long the event loop comes to nothing else."""

from __future__ import annotations

import asyncio
import time

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from kcm.apiserver.http import stalls
from kcm.apiserver.http.stalls import REMARKABLE, TICK, StallMeter

COUNT = "kcm_apiserver_event_loop_stall_seconds_count"
LONGEST = "kcm_apiserver_event_loop_longest_stall_seconds"


def compute(seconds: float) -> None:
    """Keeps the event loop from all else."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def run(registry: CollectorRegistry, seconds: float, request: str = "") -> None:
    async def work() -> None:
        meter = StallMeter(registry)
        meter.note_request()
        compute(seconds)
        if request:
            meter.note_step(request, seconds)
        await asyncio.sleep(TICK)

    asyncio.run(work())


@pytest.mark.parametrize("request_", ["", "PATCH /api/v1/namespaces/a/configmaps/b"])
def test_a_long_stall_is_measured_and_logged_with_what_caused_it(request_: str) -> None:
    registry = CollectorRegistry()
    with capture_logs() as logs:
        run(registry, REMARKABLE + TICK, request_)
    assert (registry.get_sample_value(LONGEST) or 0) >= REMARKABLE
    assert [log.get("request", "") for log in logs] == [request_]


def test_ticks_end_some_time_after_the_last_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "_REST_AFTER", 0.0)
    registry = CollectorRegistry()

    async def work() -> None:
        meter = StallMeter(registry)
        for _ in range(2):
            meter.note_request()
            meter.note_request()
            while meter._timer is not None:  # nothing else tells that it rests
                await asyncio.sleep(0)

    asyncio.run(work())
    assert registry.get_sample_value(COUNT) == 2
