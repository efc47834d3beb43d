"""Validation of topologySpreadConstraints.

Source: validateTopologySpreadConstraints in pkg/apis/core/validation/validation.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kcm.api.core_v1.affinity import TopologySpreadConstraint
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    not_supported,
    required,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec.affinity import label_keys

_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def topology_spread(constraints: Iterable[TopologySpreadConstraint], path: str) -> Faults:
    faults: Faults = []
    constraints = list(constraints)
    left = Counter((one.topology_key, one.when_unsatisfiable) for one in constraints)
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        faults += _positive(constraint.max_skew, f"{where}.maxSkew")
        if not constraint.topology_key:
            faults.append(required(f"{where}.topologyKey", "can not be empty"))
        action = constraint.when_unsatisfiable
        if action not in _ACTIONS:
            faults.append(not_supported(f"{where}.whenUnsatisfiable", action, _ACTIONS))
        kind = (constraint.topology_key, action)
        left[kind] -= 1
        if left[kind]:  # the last one of its kind is not reported
            shown = f"{{{constraint.topology_key}, {action}}}"
            faults.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", shown))
        faults += _min_domains(constraint, f"{where}.minDomains")
        for policy, field in (
            (constraint.node_affinity_policy, "nodeAffinityPolicy"),
            (constraint.node_taints_policy, "nodeTaintsPolicy"),
        ):
            if policy is not None and policy not in _POLICIES:
                faults.append(not_supported(f"{where}.{field}", policy, _POLICIES))
        faults += label_keys(
            constraint.match_label_keys or [], [], constraint.label_selector, where
        )
        if constraint.label_selector is not None:
            faults += meta.label_selector(constraint.label_selector, f"{where}.labelSelector")
    return faults


def _positive(number: int, path: str) -> Faults:
    return [] if number > 0 else [invalid(path, number, "must be greater than zero")]


def _min_domains(constraint: TopologySpreadConstraint, path: str) -> Faults:
    number, action = constraint.min_domains, constraint.when_unsatisfiable
    if number is None:
        return []
    faults = _positive(number, path)
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        faults.append(invalid(path, number, detail))
    return faults
