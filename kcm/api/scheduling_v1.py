"""scheduling.k8s.io/v1: PriorityClass.

Source: staging/src/k8s.io/api/scheduling/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apimachinery.base import Bool, Int32
from kcm.apimachinery.meta_v1 import KubeObject


class PriorityClass(KubeObject):
    """Maps a name to a priority of pods."""

    api_version: str = "scheduling.k8s.io/v1"
    kind: str = "PriorityClass"
    value: Int32 = 0
    global_default: Bool | None = None
    description: str | None = None
    preemption_policy: str | None = None
