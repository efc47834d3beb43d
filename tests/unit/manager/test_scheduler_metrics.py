"""Tests the metrics of the scheduler."""

from __future__ import annotations

from typing import Any

from kcm.controllers.scheduler.metrics import METRICS, SchedulerCounts
from kcm.manager.declared_metrics import families_of_declared
from kcm.manager.scheduler_metrics import pending_families
from kcm.redisio.keys import Keys


class Stored:
    """A server that answers with the number of pending pods."""

    keys = Keys()

    def __init__(self, pending: bytes) -> None:
        self._pending = pending

    def pipeline(self, commands: list[Any]) -> list[bytes]:
        return [self._pending for _ in commands]


def test_what_passes_count_is_shown_under_upstreams_names() -> None:
    counts = SchedulerCounts("default-scheduler")
    counts.attempt("scheduled")
    counts.attempt("unschedulable")
    counts.preemption()
    counts.scheduled(1, 0.015)
    counts.scheduled(20, 3.0)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families_of_declared(METRICS, counts.by_series)
        for sample in family.samples
    }
    attempts = "scheduler_schedule_attempts_total"
    assert samples[attempts, "scheduled", "default-scheduler"] == 1
    assert samples[attempts, "unschedulable", "default-scheduler"] == 1
    assert samples["scheduler_preemption_attempts_total",] == 1
    sli = "scheduler_pod_scheduling_sli_duration_seconds"
    assert samples[f"{sli}_bucket", "1", "0.01"] == 0
    assert samples[f"{sli}_bucket", "1", "0.02"] == 1
    assert samples[f"{sli}_sum", "16+"] == 3.0


def count_pending(stored: Any, names: list[str]) -> dict[str, float]:
    (family,) = pending_families(stored, names)
    return {sample.labels["queue"]: sample.value for sample in family.samples}


def test_pods_that_wait_are_shown_by_queue() -> None:
    counts = count_pending(Stored(b'{"active": 2, "gated": 1}'), ["default-scheduler"])
    assert counts == {"active": 2, "gated": 1, "backoff": 0, "unschedulable": 0}


def test_without_a_scheduler_nothing_is_pending() -> None:
    assert set(count_pending(Stored(b""), []).values()) == {0}
