"""StatefulSet: keeps numbered pods, each with a name and volumes of its own.

A sync takes the steps that may be taken now; by default that is one pod at a time, in order.
The pods' changes bring the next one.

Source: pkg/controller/statefulset/{stateful_set,stateful_set_control,stateful_pod_control}.go,
Kubernetes 1.33. Departures: a claim that an earlier set or pod of the same name managed is taken
over, where upstream leaves it for the garbage collector to delete under the pod that uses it; a
set comes back when the next pod has been ready for minReadySeconds, as 1.34 does; and the
condition Stalled says when an update waits for a pod that never gets ready.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pydantic import Field

from kcm.api.apps_v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.controllers.statefulset.events import told
from kcm.controllers.statefulset.identity import is_member, is_running_and_ready
from kcm.controllers.statefulset.revisions import Revisions
from kcm.controllers.statefulset.rollout import Rollout
from kcm.controllers.statefulset.status import STALLED, completed, counted, with_stalled, without
from kcm.helpers.owners import owner_keys, selector_of
from kcm.helpers.pods import available_in
from kcm.helpers.refs import claim, own_and_orphans
from kcm.reconcile.contract import (
    Controller,
    Options,
    View,
    Watch,
    own_key,
)
from kcm.reconcile.plan import Delete, Outcome, Plan, UpdateStatus


class StatefulSetOptions(Options):
    """Tunables of the StatefulSet controller."""

    concurrent_statefulset_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of statefulset objects that are allowed to sync concurrently. "
        "Larger number = more responsive statefulsets, but more CPU (and network) load",
    )
    max_unavailable_stateful_set: bool = Field(
        default=False,
        description="Feature gate MaxUnavailableStatefulSet (alpha): honour "
        "spec.updateStrategy.rollingUpdate.maxUnavailable",
    )


class StatefulSetController(Controller):
    """One key per StatefulSet."""

    name = "statefulset-controller"
    short_name = "statefulset"
    group = "workloads"
    options_type = StatefulSetOptions
    options: StatefulSetOptions
    reads = (ControllerRevision, PersistentVolumeClaim)

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(StatefulSet, own_key), Watch(Pod, owner_keys(StatefulSet)))

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_statefulset_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        found = view.lister(StatefulSet).find(key)
        selector = selector_of(found) if found is not None else None
        if found is None or selector is None:
            return Plan()
        pods = [pod for pod in own_and_orphans(found, Pod, view) if is_member(found, pod)]
        claimed = claim(found, selector, pods)
        history = claim(found, selector, own_and_orphans(found, ControllerRevision, view))
        plan = Plan().then(*claimed.writes, *history.writes, essential=True)
        known = view.lister(ControllerRevision)
        revisions = Revisions.of(found, history.objects, lambda name: known.find(name) is not None)
        return self._planned(plan, found, claimed.objects, revisions, view)

    def _planned(
        self,
        plan: Plan,
        found: StatefulSet,
        pods: Sequence[Pod],
        revisions: Revisions,
        view: View,
    ) -> Plan:
        rollout = Rollout(found, pods, revisions, view.lister(PersistentVolumeClaim), view.now)
        if not found.deleting:
            plan.then(*revisions.update.writes, essential=True)
            rollout.run(self._max_unavailable(found))
            plan.then(*rollout.new_claims, slow_start=True)
            plan.then(*rollout.creates, slow_start=True)
            plan.then(*rollout.patches).then(*rollout.deletes)
            plan.then(*map(Delete, revisions.doomed(found, pods)))
        status = with_stalled(counted(found, pods, revisions, view.now), rollout.stalled)
        plan.status_after = partial(_written, found, status, rollout.replaced)
        plan.events_after = partial(told, found)
        plan.requeue_after = _soonest(rollout.retry_after, _next_availability(found, pods, view))
        if rollout.stalled is not None and not _was_stalled(found):
            message = rollout.stalled.message or ""
            plan.record(found, rollout.stalled.reason or "", message, warning=True)
        return plan

    def _max_unavailable(self, found: StatefulSet) -> Callable[[int], int] | None:
        if not self.options.max_unavailable_stateful_set:
            return None
        update = found.spec.update_strategy.rolling_update
        return partial(_amount, update.max_unavailable if update else None)


def _amount(value: int | str | None, of: int) -> int:
    """How many pods an update may take at a time; percentages are rounded down, one at least."""
    if isinstance(value, str) and value.endswith("%"):
        return max(1, int(value[:-1]) * of // 100)
    return max(1, int(value or 1))


def _written(
    found: StatefulSet, status: StatefulSetStatus, replaced: Sequence[Pod], outcome: Outcome
) -> UpdateStatus | None:
    """The status after the writes: a pod that could not be deleted still counts."""
    deleted = [write.old for write, _ in outcome.done if isinstance(write, Delete)]
    gone = sum(any(pod is old for old in deleted) for pod in replaced)
    status = completed(found, without(status, gone))
    return None if status == found.status else UpdateStatus(found.with_status(status), found)


def _was_stalled(found: StatefulSet) -> bool:
    return any(condition.type == STALLED for condition in found.status.conditions or ())


def _next_availability(found: StatefulSet, pods: Sequence[Pod], view: View) -> float | None:
    """Seconds until the next ready pod has been so for minReadySeconds.

    Upstream counts from the moment when it notices, so that each pod of a rollout may wait
    twice (issues 113878, 136831); knowing when, we come back then.
    """
    seconds = found.spec.min_ready_seconds or 0
    waits = (available_in(pod, seconds, view.now) for pod in pods if is_running_and_ready(pod))
    return min((wait for wait in waits if wait), default=None)


def _soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)
