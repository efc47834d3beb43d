from __future__ import annotations

import pytest

from kcm.coordination.workqueue.types import (
    BUCKETS,
    LatencyHistogram,
    SyncResult,
    SyncStatus,
    parse_stats,
)

FIXED = {
    "depth": "2",
    "running": "1",
    "delayed": "0",
    "failing": "0",
    "oldest": "1500.000",
    "unfinished": "250.500",
    "longest": "250.500",
    "cap": "5",
    "draining": "0",
    "now": "10000",
}


def reply(name: str, **more: str) -> list[str]:
    raw = {**FIXED, **more}
    return [name, str(len(raw)), *(part for pair in raw.items() for part in pair)]


def test_buckets_are_upstreams() -> None:
    assert BUCKETS[0] == pytest.approx(10e-9)
    assert BUCKETS[-1] == pytest.approx(10.0)
    assert len(BUCKETS) == 10


def test_stats_of_several_queues_are_told_apart() -> None:
    first, second = parse_stats([*reply("a", adds="7"), *reply("b", draining="1")])
    assert (first.name, first.adds, first.draining) == ("a", 7, False)
    assert (second.name, second.adds, second.draining) == ("b", 0, True)


def test_ages_are_in_seconds() -> None:
    (stats,) = parse_stats(reply("a", last_finish="7500"))
    assert (stats.oldest, stats.longest, stats.since_finish) == (1.5, 0.2505, 2.5)
    (stats,) = parse_stats(reply("a"))
    assert stats.since_finish is None


def test_histograms_are_cumulated_for_prometheus() -> None:
    histogram = LatencyHistogram((1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3), 4.5)
    pairs = histogram.cumulate()
    assert pairs[0] == ("1e-08", 1.0)
    assert pairs[2] == ("1e-06", 3.0)
    assert pairs[-2:] == [("10.0", 3.0), ("+Inf", 6.0)]


def test_histograms_are_read_from_their_fields() -> None:
    (stats,) = parse_stats(reply("a", **{"work:3": "4", "work:us": "2500000"}))
    assert stats.work_duration.counts[3] == 4
    assert stats.work_duration.sum_seconds == 2.5
    assert sum(stats.queue_duration.counts) == 0


def test_outcomes_carry_their_delay() -> None:
    assert SyncResult.requeue_after(3) == SyncResult(SyncStatus.REQUEUE, 3)
    assert [o.result for o in (SyncResult.done(), SyncResult.retry(), SyncResult.abandon())] == [
        SyncStatus.DONE,
        SyncStatus.RETRY,
        SyncStatus.ABANDON,
    ]
