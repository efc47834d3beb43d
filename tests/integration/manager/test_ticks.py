"""Tests the passes of periodic loops: one per due time, one at a time, with a memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Event
from kcm.coordination import FencedLease
from kcm.manager.context.context import ControllerContext
from kcm.manager.ticks.housekeeping import expire_events
from kcm.manager.ticks.runner import TickRunner
from kcm.testing.clock import FakeClock
from tests.integration.manager.conftest import Recording

EVENTS = Event.resource


@pytest.fixture
def ticks(context: ControllerContext) -> TickRunner:
    context.start()
    return TickRunner(context)


def test_a_pass_gets_what_the_last_one_remembered(ticks: TickRunner) -> None:
    assert ticks.run("recording", 100.0)
    assert ticks.run("recording", 120.0)
    assert Recording.passes == [{}, {"passes": "1"}]


def test_two_beats_that_send_the_same_pass_run_it_once(ticks: TickRunner) -> None:
    assert ticks.run("recording", 100.0)
    assert not ticks.run("recording", 100.0)
    assert not ticks.run("recording", 100.3)
    assert len(Recording.passes) == 1


def test_a_late_message_is_not_run_but_one_of_a_clock_set_back_is(ticks: TickRunner) -> None:
    assert ticks.run("recording", 10_000.0)
    assert not ticks.run("recording", 9_990.0)
    assert ticks.run("recording", 6_400.0)
    assert not ticks.run("recording", 6_400.0)


def test_a_pass_is_not_run_beside_another(ticks: TickRunner, context: ControllerContext) -> None:
    other = FencedLease(context.io, "tick:recording", "another-worker")
    assert other.try_acquire()
    assert not ticks.run("recording", 100.0)
    other.release()
    assert ticks.run("recording", 100.0)


def test_a_loop_that_nobody_has_is_an_error(ticks: TickRunner) -> None:
    with pytest.raises(LookupError, match="nobody"):
        ticks.run("nobody", 1.0)


def test_a_loop_of_a_controller_that_was_left_out_is_not_run(context: ControllerContext) -> None:
    skipped = {"pod-garbage-collector-controller": "the store does not serve pods"}
    context.selection = replace(context.selection, skipped=skipped)
    assert TickRunner(context).run("podgc", 1.0) is None


def test_housekeeping_expires_old_events_and_trims(
    ticks: TickRunner, context: ControllerContext
) -> None:
    from kcm.reconcile.plan import Event as Told
    from kcm.testing.builders import pod

    context.recorder.record(Told(pod("a"), "Normal", "Tested", "a message"), "test")
    context.recorder.flush()
    assert context.store.count(EVENTS) == 1
    assert ticks.run("housekeeping.trim", 100.0)
    assert ticks.run("housekeeping.events", 100.0)
    assert context.store.count(EVENTS) == 1
    assert ticks.run("housekeeping.events", 200.0)
    assert context.store.count(EVENTS) == 1


def create_event(context: ControllerContext, name: str, **fields: Any) -> None:
    """Stores an Event as a user's client would send it."""
    metadata = {"name": name, "namespace": "default", **fields.pop("metadata", {})}
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    event = Event.model_validate({"metadata": metadata, "involvedObject": about, **fields})
    context.store.create(event)


def list_after_expiry(context: ControllerContext, minutes: int, **limits: Any) -> list[str]:
    """Returns the names of the Events that are left after that time."""
    later = FakeClock(context.clock.now() + timedelta(minutes=minutes))
    expire_events(replace(context, clock=later), **limits)
    return [event.name for event in context.store.list(EVENTS).items]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"lastTimestamp": "2020-01-01T00:00:00Z"},
        {"lastTimestamp": "9999-12-31T23:59:59Z"},
        {"metadata": {"finalizers": ["example.com/stay"]}},
        {"metadata": {"managedFields": [{"manager": "a", "operation": "Update", "time": 7}]}},
    ],
    ids=["plain", "in the past", "in the future", "finalizers", "managed fields"],
)
def test_an_event_is_gone_an_hour_after_it_was_written_whatever_it_says(
    context: ControllerContext, fields: dict[str, Any]
) -> None:
    context.start()
    create_event(context, "said", **fields)
    assert list_after_expiry(context, minutes=59) == ["said"]
    assert list_after_expiry(context, minutes=61) == []


def test_the_oldest_events_go_when_those_of_a_namespace_take_much(
    context: ControllerContext,
) -> None:
    context.start()
    for number in range(5):
        last = context.clock.now() + timedelta(seconds=30 - 5 * number)
        create_event(context, f"e{number}", lastTimestamp=last.isoformat(), message="x" * 1000)
    assert list_after_expiry(context, 1, most_bytes=6000) == ["e0", "e1", "e2", "e3"]
    assert list_after_expiry(context, 1, most_bytes=3000) == ["e0", "e1"]
