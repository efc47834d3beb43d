from __future__ import annotations

from collections import Counter

from tools.conformance.lanes import run_specs
from tools.conformance.suite import AGAIN, FAILED, PASSED, Outcome


class Runs:
    """Runs that end as they are told to, the first and the second time."""

    def __init__(self, **ends: tuple[str, ...]) -> None:
        self.count: Counter[str] = Counter()
        self._ends = ends

    def __call__(self, spec: str) -> Outcome:
        ends = self._ends.get(spec, (PASSED,))
        result = ends[min(self.count[spec], len(ends) - 1)]
        self.count[spec] += 1
        return Outcome(spec, result, 0.0)


def test_what_fails_beside_others_is_run_once_more_alone() -> None:
    run = Runs(a=(FAILED, PASSED), b=(FAILED,))
    outcomes = list(run_specs(["a", "b", "c"], run, 2))
    assert {one.spec: one.result for one in outcomes} == {"a": PASSED, "b": FAILED, "c": PASSED}
    assert {one.spec for one in outcomes if one.result == AGAIN} == {"a", "b"}
    assert run.count == {"a": 2, "b": 2, "c": 1}


def test_what_runs_alone_is_run_once_and_last() -> None:
    specs = ["a [Serial]", "b", "c"]
    run = Runs(**{"a [Serial]": (FAILED, PASSED)})
    outcomes = list(run_specs(specs, run, 2))
    assert outcomes[-1] == Outcome("a [Serial]", FAILED, 0.0)
    assert run.count["a [Serial]"] == 1


def test_in_one_lane_everything_is_alone() -> None:
    run = Runs(a=(FAILED, PASSED))
    assert [one.result for one in run_specs(["a"], run, 1)] == [FAILED]
