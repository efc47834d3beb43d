"""Disruption: computes how many pods of each PodDisruptionBudget may be evicted now.

Evictions (`pods/eviction` in the API server) are allowed by the status that is computed here. Pods
have keys as well: a DisruptionTarget condition that no deletion follows is reset after two minutes.

Source: pkg/controller/disruption/disruption.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod, PodCondition
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.apimachinery.labels import Selector, format_selector
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.controllers.disruption.scales import Expected, expect_pods
from kcm.controllers.disruption.status import find_disrupted, up_to_date, with_failure
from kcm.helpers.pods import condition_of, is_terminal, with_condition
from kcm.sdk import Change, Controller, Patch, Plan, View, Watch, newest, own_key

log = structlog.get_logger("kcm.controllers.disruption")

# seconds after which a DisruptionTarget condition without a deletion is stale
STALE_AFTER = timedelta(minutes=2)
POD = "pod:"  # the prefix of the keys of pods; other keys are budgets


class DisruptionController(Controller):
    """Writes the status of PodDisruptionBudgets.

    A key is a budget, or a pod with the prefix POD.
    """

    name = "disruption-controller"
    short_name = "disruption"
    group = "nodes"
    reads_scales = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(PodDisruptionBudget, own_key), Watch(Pod, pod_keys))

    def concurrent_syncs(self) -> int:
        return 1  # as upstream

    def reconcile(self, key: str, view: View) -> Plan:
        if key.startswith(POD):
            return _sync_stale_target(key.removeprefix(POD), view)
        budget = view.lister(PodDisruptionBudget).find(key)
        return Plan() if budget is None else _sync(budget, view)


# --- which keys


def pod_keys(change: Change, view: View) -> Iterable[str]:
    """Yields the budgets that select the pod or did, and the pod if its DisruptionTarget may become
    stale.
    """
    states = [obj for obj in (change.old, change.new) if isinstance(obj, Pod)]
    for budget, selector in _compile_selectors(change.object.namespace, view):
        if any(selector.matches(pod.metadata.labels) for pod in states):
            yield budget.key
    pod = change.new
    if not isinstance(pod, Pod) or _stale_in(pod, view.now) is None:
        return
    # Most pods are deleted right after they got the condition.
    if _stale_in(newest(pod, view), view.now) is not None:
        yield POD + pod.key


def _compile_selectors(namespace: str, view: View) -> list[tuple[PodDisruptionBudget, Selector]]:
    """Returns the budgets of a namespace with their selectors; invalid ones match nothing."""
    budgets = view.lister(PodDisruptionBudget).list(namespace)
    return [(budget, _selector_or_nothing(budget)) for budget in budgets]


def _selector_or_nothing(budget: PodDisruptionBudget) -> Selector:
    try:
        return Selector.from_label_selector(budget.spec.selector)
    except errors.BadRequest:
        return Selector.nothing()


# --- budgets


def _sync(budget: PodDisruptionBudget, view: View) -> Plan:
    plan = Plan()
    try:
        pods = _pods_of(budget, view, plan)
        wanted = _count_expected(budget, pods, view, plan)
    except errors.ApiError as error:
        log.warning(
            "the status of a budget cannot be computed", budget=budget.key, error=error.message
        )
        return plan.then(Patch(budget, partial(with_failure, error.message, view.now), status=True))
    if wanted.unmanaged:
        plan.record(
            budget, "UnmanagedPods", _describe_unmanaged(budget.spec.selector), warning=True
        )
    _record_ambiguous(budget, pods, view, plan)
    _recheck(budget, pods, view.now, plan)
    generation = budget.metadata.generation
    change = partial(up_to_date, wanted, pods, generation, view.now)
    if change(budget) is not budget:
        plan.then(Patch(budget, change, status=True))
    return plan


def _pods_of(budget: PodDisruptionBudget, view: View, plan: Plan) -> Sequence[Pod]:
    try:
        selector = Selector.from_label_selector(budget.spec.selector)
    except errors.BadRequest as error:
        plan.record(budget, "NoPods", f"Failed to get pods: {error.message}", warning=True)
        raise
    pods = view.lister(Pod).list(budget.namespace, selector)
    if not pods:
        plan.record(budget, "NoPods", "No matching pods found")
    return pods


def _count_expected(
    budget: PodDisruptionBudget, pods: Sequence[Pod], view: View, plan: Plan
) -> Expected:
    try:
        return expect_pods(budget, pods, view)
    except errors.ApiError as error:
        message = f"Failed to calculate the number of expected pods: {error.message}"
        plan.record(budget, "CalculateExpectedPodCountFailed", message, warning=True)
        raise


def _recheck(budget: PodDisruptionBudget, pods: Sequence[Pod], now: datetime, plan: Plan) -> None:
    """Records Events about evicted pods that were not deleted in time.

    Plans the next sync for the time when the next of them would be overdue.
    """
    evicted = find_disrupted(budget, pods, now)
    for pod in evicted.overdue:
        message = f"Pod was expected by PDB {budget.key} to be deleted but it wasn't"
        plan.record(pod, "NotDeleted", message, warning=True)
    if evicted.recheck is not None:
        plan.requeue_after = (evicted.recheck - now).total_seconds() + 0.001


def _record_ambiguous(
    budget: PodDisruptionBudget, pods: Sequence[Pod], view: View, plan: Plan
) -> None:
    """Records Events about pods that several budgets select, since their evictions are refused."""
    compiled = _compile_selectors(budget.namespace, view)
    if len(compiled) < 2:
        return
    for pod in pods:
        labels = pod.metadata.labels
        budgets = [other for other, selector in compiled if selector.matches(labels)]
        if len(budgets) > 1:
            message = (
                f'Pod "{pod.namespace}"/"{pod.name}" matches multiple PodDisruptionBudgets.  '
                f'Chose "{budgets[0].name}" arbitrarily.'
            )
            plan.record(pod, "MultiplePodDisruptionBudgets", message, warning=True)


def _describe_unmanaged(selector: LabelSelector | None) -> str:
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {format_selector(selector)}) were "
        "found to be unmanaged. As a result, the status of the PDB cannot be calculated "
        "correctly, which may result in undefined behavior. To account for these pods please "
        'set ".spec.minAvailable" field of the PDB to an integer value.'
    )


# --- pods with a stale DisruptionTarget condition


def _sync_stale_target(key: str, view: View) -> Plan:
    pod = view.lister(Pod).find(key)
    left = _stale_in(pod, view.now) if pod is not None else None
    if pod is None or left is None:
        return Plan()
    if left > 0:
        return Plan(requeue_after=left)
    return Plan().then(Patch(pod, partial(_no_target, view.now), status=True))


def _stale_in(pod: Pod, now: datetime) -> float | None:
    """Returns the seconds until a pod's DisruptionTarget condition is stale.

    Returns None for a pod without such a condition, or with one that the kubelet set, which never
    becomes stale.
    """
    target = condition_of(pod.status, "DisruptionTarget")
    if target is None or target.status != "True" or pod.deleting or is_terminal(pod):
        return None
    if target.reason == "TerminationByKubelet":
        return None
    since = target.last_transition_time or pod.metadata.creation_timestamp or now
    return max(0.0, (since + STALE_AFTER - now).total_seconds())


def _no_target(now: datetime, obj: Pod) -> Pod:
    if _stale_in(obj, now) != 0:
        return obj
    condition = PodCondition(type="DisruptionTarget", status="False")
    return with_condition(obj, condition, now)
