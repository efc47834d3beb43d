"""What may change of a pod with scheduling gates: its node selector and node affinity narrow.

Source: pkg/apis/core/validation/validation.go (ValidatePodUpdate, validateNodeAffinityMutation),
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import PodSpec
from kcm.api.core_v1.affinity import Affinity, NodeAffinity, NodeSelectorTerm
from kcm.apimachinery.field_errors import Faults, invalid

_SELECTOR = "spec.nodeSelector"
_TERMS = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)


def narrowing(new: PodSpec, old: PodSpec) -> Faults:
    """Checks that entries are only added to the node selector, and requirements to the terms."""
    if not old.scheduling_gates:
        return []
    faults: Faults = []
    if not (old.node_selector or {}).items() <= (new.node_selector or {}).items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        faults.append(invalid(_SELECTOR, new.node_selector, detail))
    return faults + _narrowed_terms(_list_terms(new), _list_terms(old))


def _narrowed_terms(new: list[NodeSelectorTerm], old: list[NodeSelectorTerm]) -> Faults:
    if old and len(old) != len(new):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(_TERMS, new, detail)]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{_TERMS}[{index}]", after, detail)
        for index, (after, before) in enumerate(zip(new, old, strict=False))
        if not _has_only_additions(after, before)
    ]


def _has_only_additions(new: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    labels, fields = old.match_expressions or [], old.match_fields or []
    if not labels and not fields:
        return not new.match_expressions and not new.match_fields
    keeps_labels = (new.match_expressions or [])[: len(labels)] == labels
    return keeps_labels and (new.match_fields or [])[: len(fields)] == fields


def mask(new: PodSpec, old: PodSpec) -> PodSpec:
    """Returns `new` with the node selector and the node affinity of `old`, if that is gated."""
    if not old.scheduling_gates:
        return new
    before, after = node_affinity(old), new.affinity or Affinity()
    affinity: Affinity | None = after.replace(node_affinity=before)
    if affinity == Affinity() and old.affinity is None:
        affinity = None
    return new.replace(node_selector=old.node_selector, affinity=affinity)


def node_affinity(spec: PodSpec) -> NodeAffinity | None:
    return spec.affinity.node_affinity if spec.affinity else None


def _list_terms(spec: PodSpec) -> list[NodeSelectorTerm]:
    affinity = node_affinity(spec)
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return list(required.node_selector_terms) if required else []
