from __future__ import annotations

from typing import Any, cast

import pytest

from kcm import errors
from kcm.coordination.workqueue import KeyLease, Renewer
from kcm.loops import Turn
from kcm.redisio import Fence, RedisIO
from kcm.testing.clock import FakeClock


class Answers:
    """Replaces Redis: answers a renewal with `answer` for each lease."""

    def __init__(self, answer: str = "OK") -> None:
        self.answer = answer
        self.calls: list[tuple[Any, ...]] = []

    def call(self, name: str, *args: Any, call_id: str) -> list[str]:
        self.calls.append(args)
        if self.answer == "DOWN":
            raise errors.StoreUnavailable
        return ["OK", *[self.answer] * (len(args) // 3)]


def lease(token: str = "1", taken_at: float = 0.0) -> KeyLease:
    return KeyLease("q", f"k{token}", token, 0, 0.0, Fence("r", "k", token), taken_at, 4.0, 30.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def renewer(answers: Answers, clock: FakeClock) -> Renewer:
    return Renewer(cast("RedisIO", answers), clock=clock)


def test_all_held_keys_are_renewed_in_one_call_and_none_means_no_call(clock: FakeClock) -> None:
    answers = Answers()
    subject = renewer(answers, clock)
    subject.once()
    subject.hold(lease("1"), lease("2"))
    subject.once()
    assert answers.calls == [("q", "k1", "1", "q", "k2", "2")]


def test_a_renewed_key_is_not_lost_and_an_unrenewed_one_is_when_its_lease_ends(
    clock: FakeClock,
) -> None:
    answers = Answers()
    subject = renewer(answers, clock)
    held = lease()
    subject.hold(held)
    clock.step(3)
    subject.once()
    clock.step(3.9)
    assert not subject.is_lost(held)
    clock.step(0.2)
    assert subject.is_lost(held)


def test_a_refused_renewal_loses_the_key_and_is_not_repeated(clock: FakeClock) -> None:
    answers = Answers("LOST")
    subject = renewer(answers, clock)
    held = lease()
    subject.hold(held)
    subject.once()
    assert subject.is_lost(held)
    subject.once()
    assert len(answers.calls) == 1


def test_at_the_limit_renewal_stops_and_the_key_is_lost_when_the_limit_is_over(
    clock: FakeClock,
) -> None:
    answers = Answers("LIMIT")
    subject = renewer(answers, clock)
    held = lease()
    subject.hold(held)
    clock.step(3)
    subject.once()
    subject.once()
    assert len(answers.calls) == 1
    clock.step(3.9)
    assert not subject.is_lost(held)
    clock.step(0.2)
    assert subject.is_lost(held)


def test_a_released_key_is_not_renewed(clock: FakeClock) -> None:
    answers = Answers()
    subject = renewer(answers, clock)
    held = lease()
    subject.hold(held)
    subject.release(held)
    subject.once()
    assert answers.calls == []


def test_a_turn_renews_and_is_due_again_in_a_second(clock: FakeClock) -> None:
    answers = Answers("OK")
    subject = renewer(answers, clock)
    subject.hold(lease())
    assert subject.turn(0.0) == Turn(upkeep_in=1.0)
    assert len(answers.calls) == 1
