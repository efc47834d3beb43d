"""Tests the passes of periodic loops: one per due time, one at a time, with a memory."""

from __future__ import annotations

import pytest

from kcm.component.context import ControllerContext
from kcm.component.ticks import TickRunner
from kcm.coordination import FencedLease
from tests.integration.manager.conftest import Recording


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


def test_housekeeping_expires_old_events_and_trims(
    ticks: TickRunner, context: ControllerContext
) -> None:
    from kcm.api import scheme
    from kcm.api.core_v1 import Event
    from kcm.reconcile.plan import Event as Told
    from kcm.testing.builders import pod

    context.recorder.record(Told(pod("a"), "Normal", "Tested", "a message"), "test")
    context.recorder.flush()
    events = scheme.resource_of(Event)
    assert context.store.count(events) == 1
    assert ticks.run("housekeeping.trim", 100.0)
    assert ticks.run("housekeeping.events", 100.0)
    assert context.store.count(events) == 1
    old = context.store.list(events).items[0]
    assert isinstance(old, Event)
    assert old.last_timestamp is not None
    context.store.update(old.replace(last_timestamp=old.last_timestamp.replace(year=2020)))
    assert ticks.run("housekeeping.events", 200.0)
    assert context.store.count(events) == 0
