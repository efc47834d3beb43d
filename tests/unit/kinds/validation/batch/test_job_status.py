"""Validation of the status of Jobs: finished Jobs stay finished, counts do not decrease."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api.batch_v1 import JobCondition
from kcm.testing.builders import START, job
from tests.unit.kinds.validation.outcomes import validate_changed_status

LATER = START + timedelta(minutes=1)
INDEXED = {"completion_mode": "Indexed", "completions": 5, "parallelism": 2}


def true(*types: str) -> dict[str, Any]:
    return {"conditions": [JobCondition(type=type_, status="True") for type_ in types]}


COMPLETE = true("SuccessCriteriaMet", "Complete") | {
    "start_time": START,
    "completion_time": LATER,
}
FAILED = true("FailureTarget", "Failed") | {"start_time": START}


def faults(old: dict[str, Any], new: dict[str, Any], **spec: Any) -> list[str]:
    return validate_changed_status(job(status=new, **spec), job(status=old, **spec))


@pytest.mark.parametrize("end", [COMPLETE, FAILED, {"active": 3, "ready": 1, "failed": 2}])
def test_good_statuses(end: dict[str, Any]) -> None:
    assert faults({"start_time": START}, {"start_time": START} | end) == []


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ({"active": -1}, ["status.active: Invalid value: -1: must be greater than or equal to 0"]),
        (FAILED | true("Failed"),
         ["status.conditions: Invalid value: cannot set Failed=True condition without the "
          "FailureTarget=true condition"]),
        (COMPLETE | true("Complete"),
         ["status.conditions: Invalid value: cannot set Complete=True condition without the "
          "SuccessCriteriaMet=true condition"]),
        (true("SuccessCriteriaMet", "FailureTarget"),
         ["status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and "
          "FailureTarget=true conditions"]),
        (COMPLETE | {"completion_time": None},
         ["status.completionTime: Required value: completionTime is required for Complete jobs"]),
        (FAILED | {"start_time": None},
         ["status.startTime: Required value: startTime is required for finished job"]),
        (FAILED | {"active": 1},
         ["status.active: Invalid value: 1: active>0 is invalid for finished job"]),
        (FAILED | {"terminating": 1},
         ["status.terminating: Invalid value: 1: terminating>0 is invalid for finished job"]),
        (FAILED | {"uncounted_terminated_pods": {"failed": ["a"]}},
         ['status.uncountedTerminatedPods: Invalid value: {"failed":["a"]}: '
          "uncountedTerminatedPods needs to be empty for finished job"]),
        ({"ready": 2, "active": 1},
         ["status.ready: Invalid value: 2: cannot set more ready pods than active"]),
        ({"uncounted_terminated_pods": {"failed": ["a"], "succeeded": ["a", ""]}},
         ['status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
          'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"']),
        ({"completed_indexes": "1"},
         ['status.completedIndexes: Invalid value: "1": error parsing completedIndexes: '
          'too large index: "1"',
          'status.completedIndexes: Invalid value: "1": cannot set non-empty completedIndexes '
          "when non-indexed completion mode"]),
        ({"failed_indexes": ""},
         ['status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when '
          "backoffLimitPerIndex is null"]),
    ],
)  # fmt: skip
def test_bad_statuses(new: dict[str, Any], expected: list[str]) -> None:
    assert faults({}, new) == expected


@pytest.mark.parametrize("type_", ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"])
def test_an_end_is_for_good(type_: str) -> None:
    terminal = "" if type_ == "SuccessCriteriaMet" else "terminal "
    expected = (
        f"status.conditions: Invalid value: cannot disable the {terminal}{type_}=True condition"
    )
    assert expected in faults(true(type_), {})


def test_counts_never_go_back_but_for_scaled_indexes() -> None:
    old, new = {"failed": 2, "succeeded": 2}, {"failed": 1, "succeeded": 1}
    failed = "status.failed: Invalid value: 1: cannot decrease the failed counter"
    succeeded = "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter"
    assert faults(old, new) == [failed, succeeded]
    assert faults(old, new, **INDEXED | {"parallelism": 5}) == [failed]


def test_indexes_cannot_fail_and_succeed() -> None:
    spec = INDEXED | {"backoff_limit_per_index": 1}
    (fault,) = faults({}, {"completed_indexes": "0-2", "failed_indexes": "2,3"}, **spec)
    assert fault.endswith("failedIndexes and completedIndexes overlap at index: 2")


def test_the_start_moves_with_a_resumption_only() -> None:
    old, new = {"start_time": START}, {"start_time": LATER}
    (fault,) = faults(old, new)
    assert fault.startswith("status.startTime: Required value")
    assert faults(old, new, suspend=True) == []
    assert faults(old | true("Suspended"), new) == []


def test_what_was_odd_before_may_stay() -> None:
    odd = {"active": 1, "ready": 2, "completed_indexes": "7,3"}
    assert faults(odd, odd | {"failed": 1}) == []
