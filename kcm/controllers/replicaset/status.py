"""Computes the status of a ReplicaSet from its pods and from the outcome of the sync.

Source: pkg/controller/replicaset/replica_set_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kcm.api.apps_v1 import ReplicaSetCondition, ReplicaSetStatus
from kcm.api.core_v1.replication_controllers import (
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from kcm.controllers.replicaset.counts import PodCounts
from kcm.controllers.replicaset.owner import ReplicaOwner, condition_type
from kcm.sdk import Create, Delete, Outcome, UpdateStatus

REPLICA_FAILURE = "ReplicaFailure"
Conditions = Sequence[ReplicaSetCondition | ReplicationControllerCondition]


@dataclass(frozen=True)
class ReplicaSetObservation:
    """A ReplicaSet and the counts of its pods before the writes of the sync, at the time `now`."""

    rs: ReplicaOwner
    counts: PodCounts
    terminating: int | None  # None if the status does not have it
    now: datetime


def status_after(seen: ReplicaSetObservation, outcome: Outcome) -> UpdateStatus | None:
    """Returns the status update, or None if nothing changes.

    The counts are those before the writes: new pods are counted by the next sync.
    """
    rs = seen.rs
    status = _with_counts(seen).replace(
        observed_generation=rs.metadata.generation, conditions=_conditions(seen, outcome)
    )
    return None if status == rs.status else UpdateStatus(rs.with_status(status), rs)


def _with_counts(
    seen: ReplicaSetObservation,
) -> ReplicaSetStatus | ReplicationControllerStatus:
    status, counts = seen.rs.status, seen.counts
    if isinstance(status, ReplicaSetStatus):
        status = status.replace(terminating_replicas=seen.terminating)
    return status.replace(
        replicas=counts.replicas,
        fully_labeled_replicas=counts.fully_labeled or None,
        ready_replicas=counts.ready or None,
        available_replicas=counts.available or None,
    )


def _conditions(
    seen: ReplicaSetObservation, outcome: Outcome
) -> Sequence[ReplicaSetCondition | ReplicationControllerCondition] | None:
    """Returns the conditions for the new status, None if there are none.

    A sync that fails adds ReplicaFailure, unless it is there already; one that succeeds removes it.
    """
    present: Conditions = seen.rs.status.conditions or []
    error = _manage_error(outcome)
    failing = any(condition.type == REPLICA_FAILURE for condition in present)
    if error is None:
        return [c for c in present if c.type != REPLICA_FAILURE] or None
    if failing:
        return present
    failed_write = outcome.failures[0].write
    condition = condition_type(seen.rs)(
        type=REPLICA_FAILURE,
        status="True",
        reason="FailedCreate" if isinstance(failed_write, Create) else "FailedDelete",
        message=error,
        last_transition_time=seen.now.replace(microsecond=0),
    )
    return [*present, condition]


def _manage_error(outcome: Outcome) -> str | None:
    for failure in outcome.failures:
        if isinstance(failure.write, Create):
            return str(failure.error)
        if isinstance(failure.write, Delete):
            return f"unable to delete pods: {failure.error}"
    return None
