"""Plans as values."""

from __future__ import annotations

from kcm import errors
from kcm.reconcile.plan import Create, Delete, Failure, Outcome, Plan
from kcm.testing.builders import pod


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
