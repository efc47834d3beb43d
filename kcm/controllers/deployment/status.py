"""Computes the status of a Deployment: counts, and the conditions of availability and progress.

Source: pkg/controller/deployment/{progress,sync}.go and util/deployment_util.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kcm.api.apps_v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from kcm.apimachinery.meta_v1 import shift_time
from kcm.controllers.deployment.bounds import max_unavailable, wanted_replicas

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
TIMED_OUT, COMPLETE = "ProgressDeadlineExceeded", "NewReplicaSetAvailable"
_NO_DEADLINE = 2**31 - 1


@dataclass(frozen=True)
class Sets:
    """The ReplicaSets of a Deployment as they are in the cache, and the new one of them."""

    all: Sequence[ReplicaSet]
    new: ReplicaSet | None


def condition_of(status: DeploymentStatus, type_: str) -> DeploymentCondition | None:
    return next((c for c in status.conditions or () if c.type == type_), None)


def without(status: DeploymentStatus, type_: str) -> DeploymentStatus:
    kept = [c for c in status.conditions or () if c.type != type_]
    return status.replace(conditions=kept or None)


def with_condition(status: DeploymentStatus, new: DeploymentCondition) -> DeploymentStatus:
    """Returns the status with a condition, unchanged if it has one of the same status and reason.

    The transition time changes with the condition's status only.
    """
    old = condition_of(status, new.type)
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return status
    if old is not None and old.status == new.status:
        new = new.replace(last_transition_time=old.last_transition_time)
    kept = [c for c in status.conditions or () if c.type != new.type]
    return status.replace(conditions=[*kept, new])


def condition(
    type_: str, status: str, reason: str, message: str, now: datetime
) -> DeploymentCondition:
    moment = now.replace(microsecond=0)
    return DeploymentCondition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_update_time=moment,
        last_transition_time=moment,
    )


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, _NO_DEADLINE)


def count_replicas(
    deployment: Deployment, base: DeploymentStatus, sets: Sets, now: datetime
) -> DeploymentStatus:
    """Returns the status with the counts and the condition Available."""
    total = sum(rs.status.replicas for rs in sets.all)
    available = sum(rs.status.available_replicas or 0 for rs in sets.all)
    ready = sum(rs.status.ready_replicas or 0 for rs in sets.all)
    leaving = [rs.status.terminating_replicas for rs in sets.all]
    counted = [count for count in leaving if count is not None]
    status = base.replace(
        observed_generation=deployment.metadata.generation,
        replicas=total or None,
        updated_replicas=(sets.new.status.replicas if sets.new else 0) or None,
        ready_replicas=ready or None,
        available_replicas=available or None,
        unavailable_replicas=max(total - available, 0) or None,
        terminating_replicas=sum(counted) if counted and len(counted) == len(leaving) else None,
    )
    if available >= wanted_replicas(deployment) - max_unavailable(deployment):
        availability = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        availability = (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    return with_condition(status, condition(AVAILABLE, *availability, now))


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Reports whether all wanted pods are of the new template and available, and no old ones are
    left.
    """
    replicas = wanted_replicas(deployment)
    counts = (status.updated_replicas, status.replicas, status.available_replicas)
    seen = (status.observed_generation or 0) >= (deployment.metadata.generation or 0)
    return seen and all((count or 0) == replicas for count in counts)


def _has_progressed(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    def left(status: DeploymentStatus) -> int:
        return (status.replicas or 0) - (status.updated_replicas or 0)

    return (
        (new.updated_replicas or 0) > (old.updated_replicas or 0)
        or left(new) < left(old)
        or (new.ready_replicas or 0) > (old.ready_replicas or 0)
        or (new.available_replicas or 0) > (old.available_replicas or 0)
    )


def _deadline(deployment: Deployment, progressing: DeploymentCondition) -> datetime | None:
    since = progressing.last_update_time
    if since is None:
        return None
    return shift_time(since, deployment.spec.progress_deadline_seconds or 0)


def _has_timed_out(deployment: Deployment, status: DeploymentStatus, now: datetime) -> bool:
    progressing = condition_of(status, PROGRESSING)
    if progressing is None or progressing.reason == COMPLETE:
        return False
    if progressing.reason == TIMED_OUT:
        return True
    deadline = _deadline(deployment, progressing)
    return deadline is not None and deadline < now


def with_progress(
    deployment: Deployment,
    base: DeploymentStatus,
    status: DeploymentStatus,
    sets: Sets,
    now: datetime,
) -> DeploymentStatus:
    """Returns the status with the conditions Progressing and ReplicaFailure.

    `base` is the status before the counts were computed.
    """
    if not has_deadline(deployment):
        status = without(status, PROGRESSING)
    elif not _was_complete(base, status):
        status = _judge_progress(deployment, base, status, sets, now)
    failure = _failure(sets)
    return with_condition(status, failure) if failure else without(status, FAILURE)


def _was_complete(base: DeploymentStatus, status: DeploymentStatus) -> bool:
    progressing = condition_of(base, PROGRESSING)
    done = (status.replicas or 0) == (status.updated_replicas or 0)
    return done and progressing is not None and progressing.reason == COMPLETE


def _judge_progress(
    deployment: Deployment,
    base: DeploymentStatus,
    status: DeploymentStatus,
    sets: Sets,
    now: datetime,
) -> DeploymentStatus:
    name = f'ReplicaSet "{sets.new.name}"' if sets.new else f'Deployment "{deployment.name}"'
    if is_complete(deployment, status):
        message = f"{name} has successfully progressed."
        return with_condition(status, condition(PROGRESSING, "True", COMPLETE, message, now))
    if _has_progressed(deployment.status, status):
        progressing = condition(
            PROGRESSING, "True", "ReplicaSetUpdated", f"{name} is progressing.", now
        )
        old = condition_of(base, PROGRESSING)
        if old is not None and old.status == "True":
            progressing = progressing.replace(last_transition_time=old.last_transition_time)
        # Any progress moves the time of the last update, although status and reason stay.
        return with_condition(without(status, PROGRESSING), progressing)
    if _has_timed_out(deployment, status, now):
        message = f"{name} has timed out progressing."
        return with_condition(status, condition(PROGRESSING, "False", TIMED_OUT, message, now))
    return status


def _failure(sets: Sets) -> DeploymentCondition | None:
    """Returns the condition ReplicaFailure of the new ReplicaSet, else that of an old one, else
    None.
    """
    ordered = [*([sets.new] if sets.new else []), *sets.all]
    for rs in ordered:
        for condition in rs.status.conditions or ():
            if condition.type == FAILURE:
                return DeploymentCondition(
                    type=FAILURE,
                    status=condition.status,
                    reason=condition.reason,
                    message=condition.message,
                    last_update_time=condition.last_transition_time,
                    last_transition_time=condition.last_transition_time,
                )
    return None


def next_check(deployment: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """Returns the seconds until the rollout may miss its deadline, or None if it cannot."""
    progressing = condition_of(status, PROGRESSING)
    if not has_deadline(deployment) or progressing is None:
        return None
    if is_complete(deployment, status) or progressing.reason in (TIMED_OUT, COMPLETE):
        return None
    deadline = _deadline(deployment, progressing)
    if deadline is None:
        return None
    # One second more, since timestamps have no fractions.
    return max((deadline - now).total_seconds(), 0.0) + 1


def with_pause(deployment: Deployment, now: datetime) -> DeploymentStatus:
    """Returns the status with a condition about a pause that began or ended.

    A condition that the progress deadline was exceeded stays as it is.
    """
    status = deployment.status
    progressing = condition_of(status, PROGRESSING)
    if not has_deadline(deployment) or (
        progressing is not None and progressing.reason == TIMED_OUT
    ):
        return status
    was = progressing is not None and progressing.reason == "DeploymentPaused"
    if deployment.spec.paused and not was:
        reason_and_message = ("DeploymentPaused", "Deployment is paused")
    elif not deployment.spec.paused and was:
        reason_and_message = ("DeploymentResumed", "Deployment is resumed")
    else:
        return status
    return with_condition(status, condition(PROGRESSING, "Unknown", *reason_and_message, now))
