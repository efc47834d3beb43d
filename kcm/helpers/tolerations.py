"""Which taints a pod puts up with, and for how long.

Source: ToleratesTaint in staging/src/k8s.io/api/core/v1/toleration.go, GetMatchingTolerations
in pkg/apis/core/v1/helper/helpers.go, getMinTolerationTime in
pkg/controller/tainteviction/taint_eviction.go, Kubernetes 1.33.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kcm.api.core_v1 import Taint, Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Equal":
            return (toleration.value or "") == (taint.value or "")
        case "Exists":
            return True
    return False


def tolerated_for(taints: Sequence[Taint], tolerations: Iterable[Toleration] | None) -> float:
    """Seconds that a pod puts up with all of these taints: infinity for ever, 0 for not at all.

    Of several tolerations of one taint the first counts, over all taints the shortest.
    """
    found = list(tolerations or ())
    shortest = math.inf
    for taint in taints:
        used = next((t for t in found if tolerates(t, taint)), None)
        if used is None:
            return 0.0
        if used.toleration_seconds is not None:
            shortest = min(shortest, max(0.0, float(used.toleration_seconds)))
    return shortest
