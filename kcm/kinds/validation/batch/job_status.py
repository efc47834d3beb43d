"""Validation of the status of Jobs: finished Jobs stay finished, and counts do not decrease.

Most rules apply only to fields that change, so that an object whose status already breaks one can
still be updated.

Source: pkg/apis/batch/validation/validation.go and pkg/registry/batch/job/strategy.go
(getStatusValidationOptions), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable

from kcm.api.batch_v1 import Job, condition_of, end_condition
from kcm.apimachinery import completion_indexes
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_without_value,
    required,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.apps import workloads

_CONDITIONS = "status.conditions"
_FOR_GOOD = ("Failed", "Complete", "FailureTarget", "SuccessCriteriaMet")


def update(new: Job, old: Job) -> Faults:
    change = _Change(new, old)
    return [
        *meta.metadata_update(new, old),
        *_counts(new),
        *_uncounted(new),
        *change.ends(),
        *change.times(),
        *change.finished(),
        *change.indexes(),
        *change.never_back(),
    ]


def _counts(job: Job) -> Faults:
    status = job.status
    numbers = {
        "active": status.active,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "ready": status.ready,
        "terminating": status.terminating,
    }
    return workloads.counts(numbers)


def _uncounted(job: Job) -> Faults:
    uncounted = job.status.uncounted_terminated_pods
    if uncounted is None:
        return []
    faults: Faults = []
    seen: set[str] = set()
    for field, uids in (("succeeded", uncounted.succeeded), ("failed", uncounted.failed)):
        for index, uid in enumerate(uids or ()):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                faults.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                faults.append(duplicate(path, uid))
            seen.add(uid)
    return faults


def _is(job: Job, type_: str) -> bool:
    return condition_of(job, type_) is not None


class _Change:
    """Checks a change of a Job's status."""

    def __init__(self, new: Job, old: Job) -> None:
        self.new, self.old = new, old
        self._done = end_condition(new) is not None

    def _differs(self, *of: Callable[[Job], object]) -> bool:
        return any(get(self.new) != get(self.old) for get in of)

    def _turns(self, *types: str) -> bool:
        return any(_is(self.new, type_) != _is(self.old, type_) for type_ in types)

    def ends(self) -> Faults:
        """Checks that conditions do not contradict each other, and have those that they require."""
        new, turns = self.new, self._turns
        complete, failed = _is(new, "Complete"), _is(new, "Failed")
        target, met = _is(new, "FailureTarget"), _is(new, "SuccessCriteriaMet")
        wrong = {
            "cannot set Complete=True and Failed=true conditions": complete
            and failed
            and turns("Complete", "Failed"),
            "cannot set Complete=True and FailureTarget=true conditions": complete
            and target
            and turns("Complete", "FailureTarget"),
            "cannot set Failed=True condition without the FailureTarget=true condition": failed
            and not target
            and turns("Failed", "FailureTarget"),
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition": (
                complete and not met and turns("Complete", "SuccessCriteriaMet")
            ),
            "cannot set SuccessCriteriaMet=True and Failed=true conditions": met and failed,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions": met and target,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True": (
                complete and not met and new.spec.success_policy is not None
            ),
        }
        return [
            invalid_without_value(_CONDITIONS, detail) for detail, holds in wrong.items() if holds
        ]

    def times(self) -> Faults:
        """Checks startTime and completionTime."""
        new, old = self.new.status, self.old.status
        start, end, path = new.start_time, new.completion_time, "status.completionTime"
        complete = _is(self.new, "Complete")
        faults: Faults = []
        if self._turns("Complete") or end != old.completion_time:
            if end is not None and not complete:
                detail = "cannot set completionTime when there is no Complete=True condition"
                faults.append(invalid(path, end, detail))
            if end is None and complete:
                faults.append(required(path, "completionTime is required for Complete jobs"))
        changed = start != old.start_time or end != old.completion_time
        if changed and start is not None and end is not None and end < start:
            faults.append(invalid(path, end, "completionTime cannot be set before startTime"))
        if None not in (end, old.completion_time) and end != old.completion_time:
            faults.append(invalid(path, end, "completionTime cannot be mutated"))
        # Upstream rejects its own controller's reset of startTime when a Job is resumed
        # (its issue 134521).
        resumed = _is(self.old, "Suspended") and not _is(self.new, "Suspended")
        restarts = self.new.spec.suspend or (resumed and start is not None)
        if old.start_time not in (None, start) and not restarts:
            detail = "startTime cannot be removed for unsuspended job"
            faults.append(required("status.startTime", detail))
        return faults

    def finished(self) -> Faults:
        """Checks that a finished Job has no active, terminating or uncounted pods."""
        status, ended = self.new.status, self._turns("Complete", "Failed")
        faults: Faults = []
        active = ended or self._differs(lambda job: job.status.active)
        if active and self._done and (status.active or 0) > 0:
            detail = "active>0 is invalid for finished job"
            faults.append(invalid("status.active", status.active, detail))
        start = ended or self._differs(lambda job: job.status.start_time)
        if start and self._done and status.start_time is None:
            faults.append(required("status.startTime", "startTime is required for finished job"))
        uncounted = status.uncounted_terminated_pods
        changed = ended or self._differs(lambda job: job.status.uncounted_terminated_pods)
        if (
            changed
            and self._done
            and uncounted is not None
            and (uncounted.succeeded or uncounted.failed)
        ):
            detail = "uncountedTerminatedPods needs to be empty for finished job"
            faults.append(invalid("status.uncountedTerminatedPods", uncounted, detail))
        ending = ended or self._differs(lambda job: job.status.terminating)
        if ending and self._done and (status.terminating or 0) > 0:
            detail = "terminating>0 is invalid for finished job"
            faults.append(invalid("status.terminating", status.terminating, detail))
        return faults + self._ready()

    def _ready(self) -> Faults:
        status = self.new.status
        changed = self._differs(lambda job: job.status.ready, lambda job: job.status.active)
        if not changed or status.ready is None or status.ready <= (status.active or 0):
            return []
        return [invalid("status.ready", status.ready, "cannot set more ready pods than active")]

    def indexes(self) -> Faults:
        """Checks completedIndexes and failedIndexes."""
        spec, status = self.new.spec, self.new.status
        done, failed = status.completed_indexes or "", status.failed_indexes
        done_changed = self._differs(lambda job: job.status.completed_indexes or "")
        failed_changed = self._differs(lambda job: job.status.failed_indexes)
        faults: Faults = []
        if done_changed:
            faults += _readable("completedIndexes", done, spec.completions)
            if done and spec.completion_mode != "Indexed":
                detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
                faults.append(invalid("status.completedIndexes", done, detail))
        if failed is None:
            return faults
        path = "status.failedIndexes"
        if failed_changed and spec.backoff_limit_per_index is None:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            faults.append(invalid(path, failed, detail))
        elif failed_changed:
            faults += _readable("failedIndexes", failed, spec.completions)
        if (done_changed or failed_changed) and spec.completions is not None:
            both = completion_indexes.overlap(done, failed, spec.completions)
            if both is not None:
                detail = f"failedIndexes and completedIndexes overlap at index: {both}"
                faults.append(invalid(path, failed, detail))
        return faults

    def never_back(self) -> Faults:
        """Checks that final conditions stay True, and that counts do not decrease."""
        new, old, spec = self.new.status, self.old.status, self.new.spec
        faults = [
            invalid_without_value(_CONDITIONS, _not_off(type_))
            for type_ in _FOR_GOOD
            if _is(self.old, type_) and not _is(self.new, type_)
        ]
        if (new.failed or 0) < (old.failed or 0):
            detail = "cannot decrease the failed counter"
            faults.append(invalid("status.failed", new.failed or 0, detail))
        # Indexed Jobs can be scaled down below the number of succeeded indexes.
        scalable = spec.completion_mode == "Indexed" and spec.completions == spec.parallelism
        if not scalable and (new.succeeded or 0) < (old.succeeded or 0):
            detail = "cannot decrease the succeeded counter"
            faults.append(invalid("status.succeeded", new.succeeded or 0, detail))
        was_met = _is(self.old, "SuccessCriteriaMet")
        if _is(self.old, "Complete") and not was_met and _is(self.new, "SuccessCriteriaMet"):
            detail = (
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
            )
            faults.append(invalid_without_value(_CONDITIONS, detail))
        return faults


def _not_off(type_: str) -> str:
    terminal = "" if type_ == "SuccessCriteriaMet" else "terminal "
    return f"cannot disable the {terminal}{type_}=True condition"


def _readable(field: str, text: str, completions: int | None) -> Faults:
    if completions is None:
        return []
    try:
        completion_indexes.parse_strictly(text, completions)
    except ValueError as error:
        return [invalid(f"status.{field}", text, f"error parsing {field}: {error}")]
    return []
