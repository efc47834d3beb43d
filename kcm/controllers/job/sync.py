"""Plans one sync of one Job: the pods to create and delete, the counting of ended pods, the status.

The writes are sent in this order: adoptions; deletions; the status with the pods that will be
counted; removals of their finalizers; creations; the status that has counted them.

Source: syncJob, manageJob and enactJobFinished in pkg/controller/job/job_controller.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kcm.api.batch_v1 import Job, JobCondition, JobStatus
from kcm.api.core_v1 import Pod
from kcm.controllers.job.backoff import wait_for_any, wait_for_index
from kcm.controllers.job.conditions import (
    COMPLETE,
    SUSPENDED,
    final_of,
    new_condition,
    with_condition,
)
from kcm.controllers.job.counts import count_sync
from kcm.controllers.job.pods import (
    count_ignored_index_failures,
    has_limit_per_index,
    index_failures,
    indexed_pod,
    indexes_of,
    is_indexed,
    plain_pod,
    replaces_only_ended,
    untrack,
)
from kcm.controllers.job.policies import judge_failure
from kcm.controllers.job.removal import choose_pods_to_remove
from kcm.controllers.job.state import JobState, deadline_in, success_by_count
from kcm.controllers.job.tracking import Tracking, track_ended_pods
from kcm.helpers.pod_events import pod_write_events
from kcm.helpers.pods import is_ready, is_terminating
from kcm.sdk import Counts, Create, Delete, Event, Outcome, Patch, Plan, UpdateStatus, sum_counts

BURST = 500  # the most pods that one sync creates, or deletes because there are too many


@dataclass(frozen=True)
class _Pods:
    """The pods that one sync deletes and creates."""

    deleted: Sequence[Pod] = ()
    is_forgotten: bool = False  # whether the deleted pods do not count as ended
    created: Sequence[Create] = ()
    wait: float | None = None  # seconds until more pods may be created


def plan_sync(state: JobState, plan: Plan) -> Plan:
    """Adds the writes of one sync to a plan, and returns it."""
    is_managed = state.finished is None and not state.job.deleting
    if state.finished is not None:
        pods = _Pods(deleted=state.active)
    else:
        pods = _choose_pods(state) if is_managed else _Pods()
        left = len(state.active) - len(pods.deleted) + len(pods.created)
        state = replace(state, finished=success_by_count(state, left))
    return _JobSync(state, pods, is_managed).plan(plan)


class _JobSync:
    """Builds the writes from a Job's state, and the Job's status from the outcome of the writes."""

    def __init__(self, state: JobState, pods: _Pods, is_managed: bool) -> None:
        self._state = state
        self._job = state.job
        self._pods = pods
        self._is_managed = is_managed  # whether missing pods are created and surplus ones deleted
        self._tracking: Tracking = track_ended_pods(state, self._status_with_start())
        # uids of the pods whose finalizer is removed
        self._removals = {pod.uid for pod in self._tracking.removals}
        self._first = self._with_interim(self._tracking.status)

    def _status_with_start(self) -> JobStatus:
        """Returns the status with the start time, which a resumed Job gets anew."""
        before, resumes = self._job.status, self._is_managed and self._state.finished is None
        if before.start_time is not None and not resumes:
            return before
        return before.replace(start_time=self._state.started)

    def _with_interim(self, status: JobStatus) -> JobStatus:
        """Returns the status with the interim condition if the Job is finishing, else with the
        condition about suspension.

        The interim condition is written before any pod is deleted because the Job ends.
        """
        if self._state.finished is not None:
            return with_condition(status, self._state.finished)
        if self._is_managed:
            return self._with_suspension(status)
        return status

    def _with_suspension(self, status: JobStatus) -> JobStatus:
        now = self._state.now
        if self._state.suspended:
            suspended = new_condition(SUSPENDED, "JobSuspended", "Job suspended", now)
            return with_condition(status, suspended)
        resumed = new_condition(SUSPENDED, "JobResumed", "Job resumed", now).replace(status="False")
        return with_condition(status, resumed)

    # --- the plan

    def plan(self, plan: Plan) -> Plan:
        """Adds all writes of the sync to a plan, and returns it."""
        pods, job = self._pods, self._job
        if pods.is_forgotten:
            plan.then(*(Patch(pod, untrack) for pod in pods.deleted), essential=True)
        plan.then(*(Delete(pod) for pod in pods.deleted), essential=True)
        if self._tracking.removals or self._is_to_end():
            plan.then(UpdateStatus(job.with_status(self._first), job), essential=True)
        plan.then(*(Patch(pod, untrack) for pod in self._tracking.removals))
        plan.then(*pods.created, slow_start=True)
        plan.status_after = lambda outcome: UpdateStatus(job.with_status(self._after(outcome)), job)
        plan.events_after = self._events
        plan.counts_after = self._counts
        plan.requeue_after = self._next()
        return plan

    def _is_to_end(self) -> bool:
        """Reports whether the interim condition is new to the status."""
        is_recorded = self._first.conditions == self._job.status.conditions
        return self._state.finished is not None and not is_recorded

    def _next(self) -> float | None:
        if self._state.finished is not None:
            return None
        waits = (self._pods.wait, deadline_in(self._state))
        return min((max(0.0, wait) for wait in waits if wait is not None), default=None)

    # --- the status after the writes

    def _after(self, outcome: Outcome) -> JobStatus:
        removed = {
            write.old.uid
            for write, _ in outcome.done
            if isinstance(write, Patch) and write.old.uid in self._removals
        }
        made = sum(isinstance(write, Create) for write, _ in outcome.done)
        deleted = {pod.uid for pod in self._pods.deleted}
        staying = [pod for pod in self._state.active if pod.uid not in deleted]
        leaving = sum(is_terminating(pod) for pod in self._state.pods) + len(deleted)
        first = self._tracking.after(removed).replace(
            start_time=self._first.start_time, conditions=self._first.conditions
        )
        status = first.replace(
            active=len(staying) + made or None,
            ready=sum(is_ready(pod) for pod in staying),
            terminating=leaving,
        )
        end = self._end(status)
        return status if end is None else self._status_at_end(status, end)

    def _end(self, status: JobStatus) -> JobCondition | None:
        """Returns the final condition once all pods have ended and are counted, else None."""
        uncounted = status.uncounted_terminated_pods
        open_ = uncounted is not None and (uncounted.succeeded or uncounted.failed)
        if self._state.finished is None or self._tracking.is_full or open_:
            return None
        if status.terminating or status.active:
            return None
        return final_of(self._state.finished, self._state.now)

    def _status_at_end(self, status: JobStatus, end: JobCondition) -> JobStatus:
        moment = end.last_transition_time
        # A Job without completions may end before it has started.
        status = status.replace(start_time=status.start_time or moment)
        if end.type == COMPLETE:
            status = status.replace(completion_time=moment)
        return with_condition(status, end)

    # --- events and numbers

    def _counts(self, outcome: Outcome) -> Counts:
        terminating = sum(is_terminating(pod) for pod in self._state.pods)
        return sum_counts(count_sync(self._job, self._after(outcome), terminating, outcome))

    def _events(self, outcome: Outcome) -> list[Event]:
        events = pod_write_events(self._job, outcome)
        return events if outcome.failures else [*events, *self._job_events(outcome)]

    def _job_events(self, outcome: Outcome) -> Iterable[Event]:
        """Yields Events about the new conditions of the Job's status."""
        job, status = self._job, self._after(outcome)
        before = {c.type: c.status for c in job.status.conditions or ()}
        for condition in status.conditions or ():
            if before.get(condition.type) == condition.status:
                continue
            if condition.type == SUSPENDED:
                word = "Suspended" if condition.status == "True" else "Resumed"
                yield Event(job, "Normal", word, condition.message or "")
            elif condition.type == COMPLETE:
                if (status.succeeded or 0) > (job.spec.completions or status.succeeded or 0):
                    yield Event(job, "Warning", "TooManySucceededPods", _TOO_MANY)
                yield Event(job, "Normal", "Completed", "Job completed")
            elif condition.type == "Failed":
                yield Event(job, "Warning", condition.reason or "", condition.message or "")


_TOO_MANY = "Too many succeeded pods running after completion count reached"


# --- which pods to create and delete


def _choose_pods(state: JobState) -> _Pods:
    """Returns deletions or creations, not both.

    So pods that share an index are deleted before others are created.
    """
    wanted = 0 if state.suspended else _count_wanted_pods(state)
    active = len(state.active)
    to_delete = choose_pods_to_remove(state.job, state.active, max(0, active - wanted))
    if not state.suspended:
        to_delete = to_delete[:BURST]
    if to_delete or state.suspended:
        return _Pods(deleted=to_delete, is_forgotten=True)
    missing = wanted - active - _still_ending(state)
    return _creations(state, min(missing, BURST)) if missing > 0 else _Pods()


def _count_wanted_pods(state: JobState) -> int:
    spec = state.job.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        # As any pod's success means that the work is done, no pod is created after the first.
        return len(state.active) if state.succeeded > 0 else parallelism
    return max(0, min(spec.completions - state.succeeded, parallelism))


def _still_ending(state: JobState) -> int:
    if not replaces_only_ended(state.job):
        return 0
    return sum(is_terminating(pod) for pod in state.pods)


def _creations(state: JobState, missing: int) -> _Pods:
    job = state.job
    if not has_limit_per_index(job):
        wait = wait_for_any(job, state.pods, state.now)
        if wait > 0:
            return _Pods(wait=wait)
    if not is_indexed(job):
        # The same object is created several times: the store copies it and generates the names.
        return _Pods(created=[Create(plain_pod(job))] * missing)
    return _create_indexed(state, _list_pending_indexes(state, missing))


def _list_pending_indexes(state: JobState, count: int) -> list[int]:
    taken = state.succeeded_indexes.with_indexes(indexes_of(state.active))
    if replaces_only_ended(state.job):
        taken = taken.with_indexes(indexes_of(pod for pod in state.pods if is_terminating(pod)))
    if state.failed_indexes is not None:
        taken = taken | state.failed_indexes
    missing = taken.missing(state.completions)
    return [index for index, _ in zip(missing, range(count), strict=False)]


def _create_indexed(state: JobState, indexes: list[int]) -> _Pods:
    job = state.job
    creates: list[Create] = []
    waits: list[float] = []
    for index in indexes:
        before = state.last_failed.get(index)
        wait = wait_for_index(before, state.now)
        if wait > 0:
            waits.append(wait)
            continue
        counts = _failures_before(job, before) if has_limit_per_index(job) else None
        creates.append(Create(indexed_pod(job, index, counts)))
    return _Pods(created=creates, wait=min(waits, default=None))


def _failures_before(job: Job, pod: Pod | None) -> tuple[int, int]:
    """Returns the counted and the ignored failures of an index, including that of its last pod."""
    if pod is None:
        return 0, 0
    counted, ignored = index_failures(pod), count_ignored_index_failures(pod)
    return (counted + 1, ignored) if judge_failure(job, pod).counts else (counted, ignored + 1)
