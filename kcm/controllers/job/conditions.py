"""Builds the conditions of Jobs and adds them to a status.

Source: pkg/controller/job/job_controller.go and utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.batch_v1 import JobCondition, JobStatus

SUSPENDED, SUCCESS_CRITERIA_MET, FAILURE_TARGET = "Suspended", "SuccessCriteriaMet", "FailureTarget"
COMPLETE, FAILED = "Complete", "Failed"

# By interim condition, the final one: a Job gets the first when its end is decided, and the second
# when all its pods are gone and counted.
FINAL = {SUCCESS_CRITERIA_MET: COMPLETE, FAILURE_TARGET: FAILED}


def new_condition(type_: str, reason: str, message: str, now: datetime) -> JobCondition:
    """Returns a condition with the status True and the time `now`."""
    moment = now.replace(microsecond=0)
    return JobCondition(
        type=type_,
        status="True",
        last_probe_time=moment,
        last_transition_time=moment,
        reason=reason,
        message=message,
    )


def final_of(interim: JobCondition, now: datetime) -> JobCondition:
    """Returns the final condition of a Job with this interim condition."""
    return new_condition(FINAL[interim.type], interim.reason or "", interim.message or "", now)


def with_condition(status: JobStatus, new: JobCondition) -> JobStatus:
    """Returns the status with a condition.

    Returns the same status when it has the condition already, and when the condition is false and
    the status never had it.
    """
    conditions = list(status.conditions or ())
    for at, old in enumerate(conditions):
        if old.type != new.type:
            continue
        if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
            return status
        conditions[at] = new
        return status.replace(conditions=conditions)
    return status if new.status == "False" else status.replace(conditions=[*conditions, new])
