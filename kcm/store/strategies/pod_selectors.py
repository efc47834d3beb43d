"""The labels of a new pod that its affinity and its spread constraints refer to.

Source: mutatePodAffinity and mutateTopologySpreadConstraints in pkg/registry/core/pod/strategy.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kcm.api.core_v1 import Pod, PodSpec
from kcm.api.core_v1.affinity import (
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
)
from kcm.apimachinery.meta_v1 import LabelSelector, LabelSelectorRequirement

SideT = TypeVar("SideT", PodAffinity, PodAntiAffinity)
Labels = Mapping[str, str]


def with_label_keys(pod: Pod) -> Pod:
    """Returns the pod with its matchLabelKeys and mismatchLabelKeys as requirements of selectors.

    A key that is no label of the pod adds none, and a term without a selector stays as it is.
    """
    spec, labels = pod.spec, pod.labels
    if not _has_label_keys(spec):
        return pod
    affinity = spec.affinity and spec.affinity.replace(
        pod_affinity=_complete_side(spec.affinity.pod_affinity, labels),
        pod_anti_affinity=_complete_side(spec.affinity.pod_anti_affinity, labels),
    )
    constraints = spec.topology_spread_constraints
    spread = constraints and [_complete_constraint(one, labels) for one in constraints]
    return pod.with_spec(spec.replace(affinity=affinity, topology_spread_constraints=spread))


def _has_label_keys(spec: PodSpec) -> bool:
    terms = spec.affinity.list_pod_terms() if spec.affinity is not None else ()
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms) or any(
        constraint.match_label_keys for constraint in spec.topology_spread_constraints or ()
    )


def _complete_side(side: SideT | None, labels: Labels) -> SideT | None:
    if side is None:
        return None
    required = side.required_during_scheduling_ignored_during_execution
    preferred = side.preferred_during_scheduling_ignored_during_execution
    return side.replace(
        required_during_scheduling_ignored_during_execution=required
        and [_complete_term(term, labels) for term in required],
        preferred_during_scheduling_ignored_during_execution=preferred
        and [
            weighted.replace(pod_affinity_term=_complete_term(weighted.pod_affinity_term, labels))
            for weighted in preferred
        ],
    )


def _complete_term(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    wanted = {"In": term.match_label_keys, "NotIn": term.mismatch_label_keys}
    return term.replace(label_selector=_add(term.label_selector, wanted, labels))


def _complete_constraint(
    constraint: TopologySpreadConstraint, labels: Labels
) -> TopologySpreadConstraint:
    wanted = {"In": constraint.match_label_keys}
    return constraint.replace(label_selector=_add(constraint.label_selector, wanted, labels))


def _add(
    selector: LabelSelector | None, wanted: Mapping[str, list[str] | None], labels: Labels
) -> LabelSelector | None:
    """Returns the selector with a requirement for each key. `wanted` has the keys by operators."""
    added = [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for operator, keys in wanted.items()
        for key in keys or ()
        if key in labels
    ]
    if selector is None or not added:
        return selector
    return selector.replace(match_expressions=[*(selector.match_expressions or ()), *added])
