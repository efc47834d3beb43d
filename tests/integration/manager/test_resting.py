"""Tests loops that rest until the loop whose memory they read has passed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import pytest

from kcm.coordination import FencedLease
from kcm.manager.context.context import ControllerContext
from kcm.manager.ticks.resting import is_resting, list_followed_loops
from kcm.manager.ticks.runner import TickRunner
from kcm.reconcile.contract import Tick, View
from kcm.reconcile.plan import Event, PassPlan
from kcm.testing.builders import pod
from tests.integration.manager.conftest import Recording

FOLLOWER, FOLLOWED = "recording.following", "recording"


class Following(Recording):
    """A controller with a loop that reads what the loop `recording` remembers."""

    busy: ClassVar[bool] = False

    def ticks(self) -> tuple[Tick, ...]:
        follower = Tick("following", 1.0, self._follow, sees="recording", fields=("passes",))
        return (*super().ticks(), follower)

    def _follow(self, view: View, state: Mapping[str, str]) -> PassPlan:
        plan = PassPlan()
        if self.busy:
            plan.events.append(Event(pod("a"), "Normal", "Busy", "there is something to do"))
        return plan


@pytest.fixture
def ticks(context: ControllerContext, monkeypatch: pytest.MonkeyPatch) -> TickRunner:
    monkeypatch.setattr(Following, "busy", False)
    context.selection = replace(context.selection, started=(Following(),))
    context.start()
    return TickRunner(context)


def rests(context: ControllerContext) -> bool:
    return is_resting(context.io, FOLLOWER, FOLLOWED)


def test_a_loop_that_sees_another_is_known_by_both_names() -> None:
    assert list_followed_loops([Recording(), Following()]) == {FOLLOWER: FOLLOWED}


def test_a_loop_runs_after_the_one_it_sees_and_rests_without_work(
    ticks: TickRunner, context: ControllerContext
) -> None:
    assert not rests(context)
    assert ticks.run(FOLLOWED, 100.0)
    assert rests(context)


def test_a_pass_of_the_other_loop_ends_the_rest(
    ticks: TickRunner, context: ControllerContext
) -> None:
    assert ticks.run(FOLLOWED, 100.0)
    busy_elsewhere = FencedLease(context.io, f"tick:{FOLLOWER}", "another-worker")
    assert busy_elsewhere.try_acquire()
    assert ticks.run(FOLLOWED, 120.0)
    assert not rests(context)
    busy_elsewhere.release()
    assert ticks.run(FOLLOWER, 121.0)
    assert rests(context)


def test_a_loop_with_work_does_not_rest(
    ticks: TickRunner, context: ControllerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Following, "busy", True)
    assert ticks.run(FOLLOWED, 100.0)
    assert not rests(context)
    monkeypatch.setattr(Following, "busy", False)
    assert ticks.run(FOLLOWER, 102.0)
    assert rests(context)


def test_before_the_first_pass_of_the_other_loop_nothing_rests(
    ticks: TickRunner, context: ControllerContext
) -> None:
    assert ticks.run(FOLLOWER, 100.0)
    assert not rests(context)
