"""What pod workers ask to be done to a pod; `syncer.Syncer` does it.

Source: podSyncer in pkg/kubelet/pod_workers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kcm.api.core_v1 import Pod, PodStatus
from kcm.kubelet.kuberuntime.view import PodView, RuntimePod
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import SyncPodType


class PodSyncer(Protocol):
    """What is done to a pod in each phase. They raise what went wrong; it is tried again."""

    def sync_pod(
        self,
        context: SyncContext,
        update_type: SyncPodType,
        pod: Pod,
        mirror: Pod | None,
        view: PodView,
    ) -> bool:
        """Bring the pod to run; True when it has come to its end by itself."""
        ...

    def sync_terminating_pod(
        self,
        context: SyncContext,
        pod: Pod,
        view: PodView,
        grace: int | None,
        status: Callable[[PodStatus], PodStatus] | None,
    ) -> None: ...

    def sync_terminating_runtime_pod(self, context: SyncContext, pod: RuntimePod) -> None: ...

    def sync_terminated_pod(self, context: SyncContext, pod: Pod, view: PodView) -> None: ...
