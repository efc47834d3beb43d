"""Validation of PodDisruptionBudgets.

Source: pkg/apis/policy/validation/validation.go and
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_all,
    not_negative,
    not_supported,
    required,
)
from kcm.apimachinery.meta_v1 import Condition
from kcm.kinds.validation import meta
from kcm.kinds.validation.amounts import not_more_than_100_percent, positive_int_or_percent

_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_STATUSES = ("False", "True", "Unknown")


def create(budget: PodDisruptionBudget) -> Faults:
    faults = meta.metadata(budget, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _spec(budget.spec)


def update(new: PodDisruptionBudget, old: PodDisruptionBudget) -> Faults:
    return meta.metadata_update(new, old) + _spec(new.spec)


def _spec(spec: PodDisruptionBudgetSpec) -> Faults:
    faults: Faults = []
    if spec.min_available is not None and spec.max_unavailable is not None:
        detail = "minAvailable and maxUnavailable cannot be both set"
        faults.append(invalid("spec", spec, detail))
    for field, value in (
        ("minAvailable", spec.min_available),
        ("maxUnavailable", spec.max_unavailable),
    ):
        if value is not None:
            faults += positive_int_or_percent(value, f"spec.{field}")
            faults += not_more_than_100_percent(value, f"spec.{field}")
    if spec.selector is not None:
        faults += meta.label_selector(spec.selector, "spec.selector")
    policy = spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in _EVICTION_POLICIES:
        faults.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES))
    return faults


def status_update(new: PodDisruptionBudget, old: PodDisruptionBudget) -> Faults:
    status = new.status
    return [
        *meta.metadata_update(new, old),
        *conditions(status.conditions or [], "status.conditions"),
        *not_negative("status.disruptionsAllowed", status.disruptions_allowed),
        *not_negative("status.currentHealthy", status.current_healthy),
        *not_negative("status.desiredHealthy", status.desired_healthy),
        *not_negative("status.expectedPods", status.expected_pods),
    ]


def conditions(given: list[Condition], path: str) -> Faults:
    """Checks conditions of the form that newer kinds share."""
    faults: Faults = []
    seen: set[str] = set()
    for index, condition in enumerate(given):
        where = f"{path}[{index}]"
        if condition.type in seen:
            faults.append(duplicate(f"{where}.type", condition.type))
        seen.add(condition.type)
        faults += _condition(condition, where)
    return faults


def _condition(condition: Condition, path: str) -> Faults:
    faults = invalid_all(
        f"{path}.type", condition.type, names.qualified_name_faults(condition.type)
    )
    if condition.status not in _STATUSES:
        faults.append(not_supported(f"{path}.status", condition.status, _STATUSES))
    faults += not_negative(f"{path}.observedGeneration", condition.observed_generation)
    if condition.last_transition_time is None:
        faults.append(required(f"{path}.lastTransitionTime", "must be set"))
    if not condition.reason:
        faults.append(required(f"{path}.reason", "must be set"))
    return faults
