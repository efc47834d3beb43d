"""Tolerations: which taints a pod tolerates, and for how long.

Source: ToleratesTaint in staging/src/k8s.io/api/core/v1/toleration.go, GetMatchingTolerations in
pkg/apis/core/v1/helper/helpers.go, getMinTolerationTime in
pkg/controller/tainteviction/taint_eviction.go, Kubernetes 1.33.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kcm.api.core_v1 import Taint, Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Reports whether a toleration matches a taint."""
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


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Reports whether one of the tolerations matches the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def min_toleration_seconds(
    taints: Sequence[Taint], tolerations: Iterable[Toleration] | None
) -> float:
    """Returns the seconds for which a pod tolerates all of these taints.

    Infinity means forever, 0 not at all. For each taint the first matching toleration counts; the
    result is the shortest time of all taints.
    """
    all_tolerations = list(tolerations or ())
    shortest = math.inf
    for taint in taints:
        used = next((t for t in all_tolerations if tolerates(t, taint)), None)
        if used is None:
            return 0.0
        if used.toleration_seconds is not None:
            shortest = min(shortest, max(0.0, float(used.toleration_seconds)))
    return shortest
