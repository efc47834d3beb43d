"""StatefulSet: keeps numbered pods, each with a name and volumes of its own.

A sync takes the steps that are allowed now; by default that is one pod at a time, in order. The
changes of the pods cause the next sync.

Source: pkg/controller/statefulset/{stateful_set,stateful_set_control,stateful_pod_control}.go,
Kubernetes 1.33. Departures: a claim that refers to an earlier set or pod of the same name gets its
present owner; upstream leaves it to the garbage collector, which deletes it while a pod uses it. A
set is requeued for the time when the next pod has been ready for minReadySeconds, as in 1.34. The
condition Stalled reports that an update waits for a pod that does not become ready.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pydantic import Field

from kcm.api.apps_v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.controllers.statefulset.events import events_after
from kcm.controllers.statefulset.identity import is_member, is_running_and_ready
from kcm.controllers.statefulset.revisions import Revisions
from kcm.controllers.statefulset.rollout import OrderedRollout
from kcm.controllers.statefulset.status import (
    STALLED,
    complete_update,
    count_replicas,
    with_stalled,
    without_replaced,
)
from kcm.helpers.intstr import scaled_value
from kcm.helpers.owners import claim, own_and_orphans, selector_of
from kcm.helpers.pods import next_availability
from kcm.sdk import (
    Controller,
    Delete,
    Options,
    Outcome,
    Plan,
    UpdateStatus,
    View,
    Watch,
    own_key,
    owner_keys,
)


class StatefulSetOptions(Options):
    """The options of the StatefulSet controller."""

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
    """Creates, updates and deletes the pods and claims of StatefulSets. A key is a StatefulSet."""

    name = "statefulset-controller"
    short_name = "statefulset"
    group = "workloads"
    options_type = StatefulSetOptions
    options: StatefulSetOptions
    reads = (ControllerRevision, PersistentVolumeClaim)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(StatefulSet, own_key), Watch(Pod, owner_keys(StatefulSet)))

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_statefulset_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        stateful_set = view.lister(StatefulSet).find(key)
        selector = selector_of(stateful_set) if stateful_set is not None else None
        if stateful_set is None or selector is None:
            return Plan()
        pods = [
            pod for pod in own_and_orphans(stateful_set, Pod, view) if is_member(stateful_set, pod)
        ]
        claimed = claim(stateful_set, selector, pods)
        history = claim(
            stateful_set, selector, own_and_orphans(stateful_set, ControllerRevision, view)
        )
        plan = Plan().then(*claimed.writes, *history.writes, essential=True)
        lister = view.lister(ControllerRevision)
        revisions = Revisions.of(
            stateful_set, history.objects, lambda name: lister.find(name) is not None
        )
        return self._build_plan(plan, stateful_set, claimed.objects, revisions, view)

    def _build_plan(
        self,
        plan: Plan,
        stateful_set: StatefulSet,
        pods: Sequence[Pod],
        revisions: Revisions,
        view: View,
    ) -> Plan:
        rollout = OrderedRollout(
            stateful_set, pods, revisions, view.lister(PersistentVolumeClaim), view.now
        )
        if not stateful_set.deleting:
            plan.then(*revisions.update.writes, essential=True)
            rollout.run(self._max_unavailable(stateful_set))
            plan.then(*rollout.new_claims, slow_start=True)
            plan.then(*rollout.creates, slow_start=True)
            plan.then(*rollout.patches).then(*rollout.deletes)
            plan.then(*map(Delete, revisions.find_surplus(stateful_set, pods)))
        status = with_stalled(
            count_replicas(stateful_set, pods, revisions, view.now), rollout.stalled
        )
        plan.status_after = partial(_update_status, stateful_set, status, rollout.replaced)
        plan.events_after = partial(events_after, stateful_set)
        plan.requeue_after = _soonest(
            rollout.retry_after, _next_availability(stateful_set, pods, view)
        )
        if rollout.stalled is not None and not _was_stalled(stateful_set):
            message = rollout.stalled.message or ""
            plan.record(stateful_set, rollout.stalled.reason or "", message, warning=True)
        return plan

    def _max_unavailable(self, stateful_set: StatefulSet) -> Callable[[int], int] | None:
        if not self.options.max_unavailable_stateful_set:
            return None
        update = stateful_set.spec.update_strategy.rolling_update
        return partial(_updates_at_a_time, update.max_unavailable if update else None)


def _updates_at_a_time(value: int | str | None, of: int) -> int:
    """Returns how many of `of` pods an update may replace at a time, at least one.

    `value` is a number or a percentage, which is rounded down.
    """
    return max(1, scaled_value(value, of, round_up=False))


def _update_status(
    stateful_set: StatefulSet, status: StatefulSetStatus, replaced: Sequence[Pod], outcome: Outcome
) -> UpdateStatus | None:
    """Returns the status update, or None if nothing changes.

    Only pods whose deletion succeeded are taken out of the counts.
    """
    deleted = {write.old.uid for write, _ in outcome.done if isinstance(write, Delete)}
    gone = sum(pod.uid in deleted for pod in replaced)
    status = complete_update(stateful_set, without_replaced(status, gone))
    if status == stateful_set.status:
        return None
    return UpdateStatus(stateful_set.with_status(status), stateful_set)


def _was_stalled(stateful_set: StatefulSet) -> bool:
    return any(condition.type == STALLED for condition in stateful_set.status.conditions or ())


def _next_availability(stateful_set: StatefulSet, pods: Sequence[Pod], view: View) -> float | None:
    """Returns the seconds until the next ready pod has been ready for minReadySeconds, or None.

    Upstream counts from the moment when it notices readiness, so that each pod of a rollout may
    wait twice (kubernetes/kubernetes issues 113878, 136831). Here the exact time is computed.
    """
    seconds = stateful_set.spec.min_ready_seconds or 0
    return next_availability(filter(is_running_and_ready, pods), seconds, view.now)


def _soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)
