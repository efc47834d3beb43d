"""Tests controllers' own counters and histograms: how values add up, and how Prometheus gets
them.
"""

from __future__ import annotations

import pytest

from kcm.manager.declared_metrics import families_of_declared
from kcm.reconcile.counters import Counter, Histogram, exponential_buckets, sum_counts

ENDED = Counter("jobs_finished", "Jobs that ended", ("result", "reason"))
WAIT = Histogram("wait_seconds", "How long", (1.0, 10.0), ("of",))
PLAIN = Histogram("age_ratio", "How old", exponential_buckets(0.25, 2, 3))


def collect_samples(counts: dict[str, int]) -> dict[tuple[str, ...], float]:
    families = families_of_declared((ENDED, WAIT, PLAIN), counts)
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_counters_add_up_by_their_labels() -> None:
    counts = sum_counts(
        [ENDED.count("failed", "Deadline"), ENDED.count("failed", "Deadline", by=2),
         ENDED.count("succeeded", "")]
    )  # fmt: skip
    assert collect_samples(counts) == {
        ("jobs_finished_total", "failed", "Deadline"): 3,
        ("jobs_finished_total", "succeeded", ""): 1,
    }


def test_observations_fall_into_buckets_that_include_their_bound() -> None:
    values = collect_samples(
        sum_counts(WAIT.observe(value, "pods") for value in (0.5, 1.0, 4.0, 99.0, -1.0))
    )
    assert values["wait_seconds_bucket", "pods", "1.0"] == 3
    assert values["wait_seconds_bucket", "pods", "10.0"] == 4
    assert values["wait_seconds_bucket", "pods", "+Inf"] == 5
    assert values["wait_seconds_count", "pods"] == 5
    assert values["wait_seconds_sum", "pods"] == 104.5


def test_a_histogram_may_have_no_labels() -> None:
    values = collect_samples(PLAIN.observe(0.6))
    assert (values["age_ratio_bucket", "0.5"], values["age_ratio_bucket", "1.0"]) == (0, 1)


def test_what_nobody_declares_is_not_shown() -> None:
    assert collect_samples({"something|else": 3, "jobs_finished|one_label_too_few": 1}) == {}


def test_values_are_as_many_as_labels() -> None:
    with pytest.raises(TypeError, match="jobs_finished has the labels"):
        ENDED.count("failed")


def test_a_label_may_contain_the_separator() -> None:
    assert collect_samples(ENDED.count("a|b", "c")) == {("jobs_finished_total", "a/b", "c"): 1}
