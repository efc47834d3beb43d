"""Tests of Plan, Outcome and their methods."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.reconcile.plan import (
    Create,
    Delete,
    Failure,
    Outcome,
    Patch,
    Plan,
    UpdateStatus,
    Write,
)
from kcm.testing.builders import pod, replica_set


def test_writes_keep_their_order_over_batches() -> None:
    first, second, third = Create(pod("a")), Delete(pod("b")), Create(pod("c"))
    plan = Plan().then(first, second, slow_start=True).then(third, essential=True)
    assert plan.writes == [first, second, third]
    assert [(b.slow_start, b.essential) for b in plan.batches] == [(True, False), (False, True)]


def test_no_writes_make_no_batch() -> None:
    assert Plan().then().batches == []
    assert Plan() == Plan()


def test_events_are_normal_unless_they_warn() -> None:
    obj = pod()
    plan = Plan().record(obj, "Fine", "all is well").record(obj, "Odd", "look here", warning=True)
    assert [(e.type, e.reason, e.message) for e in plan.events] == [
        ("Normal", "Fine", "all is well"),
        ("Warning", "Odd", "look here"),
    ]


def test_an_outcomes_error_is_its_first_failure() -> None:
    assert Outcome().error is None
    errs = [errors.Forbidden("first"), errors.Forbidden("second")]
    outcome = Outcome(failures=[Failure(Create(pod()), error) for error in errs])
    assert outcome.error is errs[0]


def write_status(plan: Plan, outcome: Outcome) -> bool:
    """Reports whether the plan's status is written after this outcome."""
    rs = replica_set()
    plan.status_after = lambda _: UpdateStatus(rs, rs)
    return plan.status_update(outcome) is not None


@pytest.mark.parametrize("write", [Create(pod()), Delete(pod())])
def test_a_status_that_can_wait_is_left_to_the_sync_that_a_write_causes(write: Write) -> None:
    done = Outcome(done=[(write, pod())])
    assert not write_status(Plan(status_can_wait=True), done)
    assert write_status(Plan(), done)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(),
        Outcome(done=[(Patch(pod(), lambda obj: obj), pod())]),
        Outcome(
            done=[(Create(pod()), pod())],
            failures=[Failure(Create(pod()), errors.Forbidden("no"))],
        ),
        Outcome(done=[(Create(pod()), pod())], skipped=1),
    ],
    ids=["no write", "only a patch", "a failure", "a write that was left out"],
)
def test_a_status_does_not_wait_when_no_sync_is_certain(outcome: Outcome) -> None:
    assert write_status(Plan(status_can_wait=True), outcome)
