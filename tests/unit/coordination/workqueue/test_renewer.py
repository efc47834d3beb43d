from __future__ import annotations

from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from kcm import errors
from kcm.coordination.workqueue import KeyLease, Renewer
from kcm.loops import Turn
from kcm.redisio import Fence, RedisIO

LOST = "the lease of a key in flight is lost"


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


def lease(token: str = "1") -> KeyLease:
    return KeyLease("q", f"k{token}", token, 0, 0.0, Fence("r", "k", token), 30.0)


def renewer(answers: Answers) -> Renewer:
    return Renewer(cast("RedisIO", answers))


def test_all_held_keys_are_renewed_in_one_call_and_none_means_no_call() -> None:
    answers = Answers()
    subject = renewer(answers)
    subject.once()
    subject.hold(lease("1"), lease("2"))
    subject.once()
    assert answers.calls == [("q", "k1", "1", "q", "k2", "2")]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("LOST", {"event": LOST}),
        ("LIMIT", {"event": "a sync has reached its renewal limit", "limit_seconds": 30.0}),
    ],
)
def test_a_renewal_that_is_refused_or_the_last_is_not_repeated(
    answer: str, why: dict[str, Any]
) -> None:
    answers = Answers(answer)
    subject = renewer(answers)
    subject.hold(lease())
    with capture_logs() as lines:
        subject.once()
        subject.once()
    assert len(answers.calls) == 1
    assert lines == [{"log_level": "warning", "queue": "q", "key": "k1", **why}]


def test_a_renewal_that_fails_is_repeated() -> None:
    answers = Answers("DOWN")
    subject = renewer(answers)
    subject.hold(lease())
    with pytest.raises(errors.StoreUnavailable):
        subject.once()
    answers.answer = "OK"
    subject.once()
    subject.once()
    assert len(answers.calls) == 3


@pytest.mark.parametrize("step", ["expect_end", "release"])
def test_a_key_that_ends_while_its_renewal_is_sent_is_not_lost(step: str) -> None:
    subject: Renewer
    held = lease()

    class Ending(Answers):
        def call(self, name: str, *args: Any, call_id: str) -> list[str]:
            getattr(subject, step)(held)
            return super().call(name, *args, call_id=call_id)

    subject = renewer(Ending("LOST"))
    subject.hold(held)
    with capture_logs() as lines:
        subject.once()
    assert lines == []


def test_a_key_is_renewed_until_it_is_released() -> None:
    answers = Answers()
    subject = renewer(answers)
    held = lease()
    subject.hold(held)
    subject.expect_end(held)
    subject.once()
    assert len(answers.calls) == 1
    subject.release(held)
    subject.once()
    assert len(answers.calls) == 1


def test_a_key_that_is_taken_again_may_be_lost_again() -> None:
    subject = renewer(Answers("LOST"))
    held = lease()
    subject.hold(held)
    subject.expect_end(held)
    subject.release(held)
    subject.hold(held)
    with capture_logs() as lines:
        subject.once()
    assert [line["event"] for line in lines] == [LOST]


def test_a_turn_renews_and_is_due_again_in_a_second() -> None:
    answers = Answers("OK")
    subject = renewer(answers)
    subject.hold(lease())
    assert subject.turn(0.0) == Turn(upkeep_in=1.0)
    assert len(answers.calls) == 1
