"""The OOM score adjustment of containers, which depends on their pod's quality-of-service class.

Source: pkg/kubelet/qos/policy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import Container, Pod
from kcm.api.pod_qos import BEST_EFFORT, GUARANTEED, qos_class
from kcm.kubelet.types import is_critical_pod

_GUARANTEED_SCORE = -997
_BEST_EFFORT_SCORE = 1000


def oom_score_adjustment(pod: Pod, container: Container, capacity: int) -> int:
    """Returns the container's oom_score_adj: the higher it is, the sooner the kernel kills it.

    `capacity` is the node's memory in bytes.
    """
    quality = qos_class(pod)
    if is_critical_pod(pod) or quality == GUARANTEED:
        return _GUARANTEED_SCORE
    if quality == BEST_EFFORT:
        return _BEST_EFFORT_SCORE
    asked = (container.resources.requests or {}).get("memory")
    share = 1000 * (asked.value() if asked else 0) // max(capacity, 1)
    # At least one more than that of Guaranteed pods, and less than that of BestEffort pods.
    return min(max(1000 - share, 1000 + _GUARANTEED_SCORE), _BEST_EFFORT_SCORE - 1)
