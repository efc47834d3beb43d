"""Tests the rules by which client-go aggregates, counts and drops Events, on a fake clock."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

import pytest

from kcm.reconcile.correlator import (
    AGGREGATE_AFTER,
    AGGREGATE_WITHIN,
    COMBINED,
    REPEATED_WITHIN,
    SPAM_BURST,
    EventCorrelator,
    ExpiringMapping,
    Occurrence,
)
from kcm.testing.clock import FakeClock


class Value:
    """Something that a mapping keeps alive."""


SEEN = Occurrence(
    "replicaset-controller",
    ("apps/v1", "ReplicaSet", "default", "web", "u1"),
    "Normal",
    "SuccessfulCreate",
    "Created pod: web-1",
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def correlator(clock: FakeClock) -> EventCorrelator:
    return EventCorrelator(clock)


def change_occurrence(**changes: Any) -> Occurrence:
    return dataclasses.replace(SEEN, **changes)


def test_a_repeat_raises_the_count_of_the_same_event(correlator: EventCorrelator) -> None:
    first, second = correlator.correlate(SEEN), correlator.correlate(SEEN)
    assert first is not None
    assert second is not None
    assert first.identity == second.identity
    assert (first.count, second.count) == (1, 2)


def test_another_message_is_another_event(correlator: EventCorrelator) -> None:
    first, second = (
        correlator.correlate(SEEN),
        correlator.correlate(change_occurrence(message="other")),
    )
    assert first is not None
    assert second is not None
    assert first.identity != second.identity
    assert second.count == 1


def test_events_that_differ_in_message_only_are_combined_from_the_tenth_on(
    correlator: EventCorrelator,
) -> None:
    verdicts = [
        correlator.correlate(change_occurrence(message=f"m{n}")) for n in range(AGGREGATE_AFTER + 2)
    ]
    texts = [verdict.message for verdict in verdicts if verdict]
    assert texts[AGGREGATE_AFTER - 2] == f"m{AGGREGATE_AFTER - 2}"
    assert texts[AGGREGATE_AFTER - 1] == f"{COMBINED}m{AGGREGATE_AFTER - 1}"
    last, before = verdicts[-1], verdicts[-2]
    assert last is not None
    assert before is not None
    assert last.identity == before.identity
    assert last.count == before.count + 1


def test_after_ten_quiet_minutes_they_are_told_apart_again(
    correlator: EventCorrelator, clock: FakeClock
) -> None:
    for n in range(AGGREGATE_AFTER):
        correlator.correlate(change_occurrence(message=f"m{n}"))
    clock.step(AGGREGATE_WITHIN + 1)
    verdict = correlator.correlate(change_occurrence(message="again"))
    assert verdict is not None
    assert verdict.message == "again"


def test_one_source_may_tell_of_one_object_25_times_and_then_once_in_five_minutes(
    correlator: EventCorrelator, clock: FakeClock
) -> None:
    assert sum(correlator.correlate(SEEN) is not None for _ in range(100)) == SPAM_BURST == 25
    clock.step(299)
    assert correlator.correlate(SEEN) is None
    clock.step(2)
    assert correlator.correlate(SEEN) is not None
    assert correlator.correlate(SEEN) is None


def test_the_limit_is_per_source_and_object(correlator: EventCorrelator) -> None:
    for _ in range(SPAM_BURST + 1):
        correlator.correlate(SEEN)
    assert correlator.correlate(change_occurrence(component="podgc")) is not None
    assert correlator.correlate(change_occurrence(about=(*SEEN.about[:4], "u2"))) is not None
    assert correlator.correlate(change_occurrence(reason="Else")) is None


def test_what_was_dropped_still_counts(correlator: EventCorrelator, clock: FakeClock) -> None:
    for _ in range(SPAM_BURST + 10):
        correlator.correlate(SEEN)
    clock.step(301)
    verdict = correlator.correlate(SEEN)
    assert verdict is not None
    assert verdict.count == SPAM_BURST + 11


def test_a_forgotten_event_starts_anew(correlator: EventCorrelator) -> None:
    first = correlator.correlate(SEEN)
    assert first is not None
    correlator.forget(first.identity)
    again = correlator.correlate(SEEN)
    assert again is not None
    assert again.count == 1


def test_an_event_that_is_not_repeated_for_half_an_hour_is_forgotten(
    correlator: EventCorrelator, clock: FakeClock
) -> None:
    counts = []
    for pause in (0.0, REPEATED_WITHIN, REPEATED_WITHIN + 1):
        clock.step(pause)
        decision = correlator.correlate(SEEN)
        assert decision is not None
        counts.append(decision.count)
    assert counts == [1, 2, 1]


def test_the_least_recently_used_is_forgotten_first(clock: FakeClock) -> None:
    recent: ExpiringMapping[str, int] = ExpiringMapping(clock, size=2)
    recent.put("a", 1, 60)
    recent.put("b", 2, 60)
    assert recent.get("a") == 1
    recent.put("c", 3, 60)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_what_is_over_takes_no_memory_for_long(clock: FakeClock) -> None:
    values = [Value() for _ in range(1000)]
    alive = weakref.WeakSet(values)
    held: ExpiringMapping[int, Value] = ExpiringMapping(clock)
    for number in range(1000):
        held.put(number, values.pop(), lasting=9)
        clock.step(1)
    assert held.get(999) is not None
    assert held.get(989) is None
    assert len(alive) < 300


def test_a_mapping_that_was_full_forgets_what_is_over_as_well(clock: FakeClock) -> None:
    alive: weakref.WeakSet[Value] = weakref.WeakSet()
    held: ExpiringMapping[int, Value] = ExpiringMapping(clock, size=400)
    for number in range(1000):
        value = Value()
        alive.add(value)
        held.put(number, value, lasting=9)
        if number >= 400:
            clock.step(1)
    del value
    assert len(alive) < 300
