"""Computes the status of a ReplicaSet from its pods and from the outcome of the sync.

Source: pkg/controller/replicaset/replica_set_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, cast

from kcm.api.apps_v1 import ReplicaSetCondition, ReplicaSetStatus
from kcm.api.core_v1 import Pod
from kcm.api.core_v1.pods import (
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from kcm.apimachinery.labels import Selector
from kcm.controllers.replicaset.owner import ReplicaOwner, condition_type, template_of
from kcm.helpers.pods import available_in, is_active, is_ready
from kcm.informers.store import Tally
from kcm.sdk import (
    BY_CONTROLLER,
    ORPHANS,
    Create,
    Delete,
    Outcome,
    UpdateStatus,
    View,
    controller_key,
)

# --- Counts the pods of a ReplicaSet by their state.
#
# A sync that has no pod to claim or delete needs numbers only, which the cache keeps as tallies. So
# it takes no longer for ten thousand pods than for ten.


@dataclass(frozen=True)
class PodCounts:
    """The counts of a ReplicaSet's status."""

    replicas: int = 0
    fully_labeled: int = 0
    ready: int = 0
    available: int = 0


class _PodState(NamedTuple):
    """The facts of a pod on which the counts depend, apart from the time since it became ready."""

    labels: tuple[tuple[str, str], ...]
    active: bool
    ready: bool


def _pod_state(pod: Pod) -> _PodState:
    return _PodState(tuple(sorted(pod.labels.items())), is_active(pod), is_ready(pod))


OWN_PODS = Tally(BY_CONTROLLER, _pod_state)
ORPHANED_PODS = Tally(ORPHANS, _pod_state)


def count_pods(rs: ReplicaOwner, pods: Sequence[Pod], now: datetime) -> PodCounts:
    """Returns the counts of these pods."""
    wanted = (template_of(rs).metadata.labels or {}).items()
    seconds = rs.spec.min_ready_seconds or 0
    labeled = ready = available = 0
    # Those of the pod before: caches keep equal labels only once, so identity is enough.
    labels, is_labeled = None, not wanted
    for pod in pods:
        if pod.metadata.labels is not labels:
            labels = pod.metadata.labels
            is_labeled = wanted <= pod.labels.items()
        labeled += is_labeled
        if is_ready(pod):
            ready += 1
            available += available_in(pod, seconds, now) == 0
    return PodCounts(len(pods), labeled, ready, available)


def look_up_counts(rs: ReplicaOwner, selector: Selector, view: View) -> PodCounts | None:
    """Returns the counts from the cache's tallies.

    Returns None where the sync needs the pods themselves: to adopt or release some, or because they
    become available with time.
    """
    if rs.spec.min_ready_seconds:
        return None
    lister = view.lister(Pod)
    orphans = lister.tally(ORPHANED_PODS, rs.namespace)
    if any(map(selector.matches, _list_labels(orphans))):
        return None
    own = lister.tally(OWN_PODS, controller_key(rs.namespace, rs.uid))
    if not all(map(selector.matches, _list_labels(own))):
        return None
    return _sum(rs, cast("Iterable[tuple[_PodState, int]]", own.items()))


def _list_labels(states: Iterable[object]) -> list[dict[str, str]]:
    """Returns the labels of active pods. Equal labels may be returned several times."""
    return [dict(state.labels) for state in cast("Iterable[_PodState]", states) if state.active]


def _sum(rs: ReplicaOwner, states: Iterable[tuple[_PodState, int]]) -> PodCounts:
    wanted = (template_of(rs).metadata.labels or {}).items()
    replicas = labeled = ready = 0
    for state, number in states:
        if state.active:
            replicas += number
            labeled += number if wanted <= dict(state.labels).items() else 0
            ready += number if state.ready else 0
    return PodCounts(replicas, labeled, ready, ready)


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
