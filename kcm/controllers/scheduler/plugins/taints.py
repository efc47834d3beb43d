"""The filter and the score for taints and tolerations.

Source: staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go and
pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm.api.core_v1 import Taint, Toleration
from kcm.helpers.tolerations import is_tolerated

HARD = frozenset({"NoSchedule", "NoExecute"})
SOFT = "PreferNoSchedule"
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def find_untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Returns the node's first NoSchedule or NoExecute taint that is not tolerated, or None."""
    for taint in taints:
        if taint.effect in HARD and not is_tolerated(taint, tolerations):
            return taint
    return None


def count_untolerated_soft(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """Returns how many PreferNoSchedule taints the pod does not tolerate."""
    fitting = [t for t in tolerations if not t.effect or t.effect == SOFT]
    return sum(taint.effect == SOFT and not is_tolerated(taint, fitting) for taint in taints)
