"""Taints and tolerations.

Source: staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go and
pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm.api.core_v1 import Taint, Toleration

HARD = frozenset({"NoSchedule", "NoExecute"})
SOFT = "PreferNoSchedule"
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Reports whether a pod with this toleration tolerates the taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (
        taint.value or ""
    )


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Reports whether one of the tolerations matches the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Returns the node's first taint that keeps the pod off, or None."""
    for taint in taints:
        if taint.effect in HARD and not is_tolerated(taint, tolerations):
            return taint
    return None


def soft_count(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """Returns how many PreferNoSchedule taints the pod does not tolerate."""
    fitting = [t for t in tolerations if not t.effect or t.effect == SOFT]
    return sum(taint.effect == SOFT and not is_tolerated(taint, fitting) for taint in taints)
