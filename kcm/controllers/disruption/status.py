"""Computes the status of a PodDisruptionBudget.

Source: countHealthyPods, buildDisruptedPodMap, updatePdbStatus and failSafe in
pkg/controller/disruption/disruption.go, pkg/apis/policy/v1/... and
staging/src/k8s.io/component-helpers/apps/poddisruptionbudget/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kcm.api.core_v1 import Pod
from kcm.api.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from kcm.apimachinery.meta_v1 import Condition
from kcm.controllers.disruption.scales import Expected
from kcm.helpers.pods import is_ready

DELETION_TIMEOUT = timedelta(minutes=2)  # how long an evicted pod may take until it is deleted
ALLOWED = "DisruptionAllowed"


@dataclass
class Disrupted:
    """The pods of a budget that were evicted and whose deletion has not been seen yet."""

    pods: dict[str, datetime] = field(default_factory=dict)  # the times of eviction by pod name
    overdue: list[Pod] = field(default_factory=list)
    recheck: datetime | None = None  # when the first of them will be overdue


def find_disrupted(budget: PodDisruptionBudget, pods: Sequence[Pod], now: datetime) -> Disrupted:
    """Returns the evicted pods of a budget's status that are still waiting to be deleted."""
    still_disrupted, evictions = Disrupted(), budget.status.disrupted_pods or {}
    for pod in pods:
        if pod.deleting or pod.name not in evictions:
            continue
        until = evictions[pod.name] + DELETION_TIMEOUT
        if until < now:
            still_disrupted.overdue.append(pod)
            continue
        still_disrupted.pods[pod.name] = evictions[pod.name]
        still_disrupted.recheck = min(until, still_disrupted.recheck or until)
    return still_disrupted


def up_to_date(
    expected: Expected,
    pods: Sequence[Pod],
    generation: int | None,
    now: datetime,
    obj: PodDisruptionBudget,
) -> PodDisruptionBudget:
    """Returns the budget with the status that follows from its pods.

    It may be applied to later versions of the budget, since evictions in between are in that
    version's `disruptedPods`. A budget whose spec was changed since (`generation`) is returned as
    it is.
    """
    if obj.metadata.generation != generation:
        return obj
    gone = find_disrupted(obj, pods, now).pods
    healthy = sum(not pod.deleting and pod.name not in gone and is_ready(pod) for pod in pods)
    allowed = max(0, healthy - expected.healthy) if expected.pods > 0 else 0
    status = obj.status.replace(
        current_healthy=healthy,
        desired_healthy=expected.healthy,
        expected_pods=expected.pods,
        disruptions_allowed=allowed,
        disrupted_pods=gone or None,
        observed_generation=generation,
    )
    reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
    status = _with_condition(status, allowed > 0, reason, "", now)
    return obj if _same(status, obj.status) else obj.with_status(status)


def with_failure(message: str, now: datetime, obj: PodDisruptionBudget) -> PodDisruptionBudget:
    """Returns the budget with a status that allows no evictions, because computing it failed."""
    status = obj.status.replace(disruptions_allowed=0)
    status = _with_condition(status, False, "SyncFailed", message, now)
    return obj if _same(status, obj.status) else obj.with_status(status)


def _same(new: PodDisruptionBudgetStatus, old: PodDisruptionBudgetStatus) -> bool:
    emptied: Mapping[str, datetime] | None = old.disrupted_pods or None
    return new == old.replace(disrupted_pods=emptied)


def _with_condition(
    status: PodDisruptionBudgetStatus, allowed: bool, reason: str, message: str, now: datetime
) -> PodDisruptionBudgetStatus:
    present = status.conditions or []
    before = next((c for c in present if c.type == ALLOWED), None)
    word = "True" if allowed else "False"
    kept = before is not None and before.status == word
    since = before.last_transition_time if before and kept else now.replace(microsecond=0)
    condition = Condition(
        type=ALLOWED,
        status=word,
        reason=reason,
        message=message,
        observed_generation=status.observed_generation,
        last_transition_time=since,
    )
    others = [condition if c is before else c for c in present]
    return status.replace(conditions=others if before is not None else [*others, condition])
