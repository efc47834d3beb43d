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
    """Whether a pod with this toleration puts up with the taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (
        taint.value or ""
    )


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of the tolerations is enough for the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint, in the node's order, that keeps the pod off."""
    for taint in taints:
        if taint.effect in HARD and not tolerated(taint, tolerations):
            return taint
    return None


def soft_count(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many taints would rather not have the pod."""
    fitting = [t for t in tolerations if not t.effect or t.effect == SOFT]
    return sum(taint.effect == SOFT and not tolerated(taint, fitting) for taint in taints)
