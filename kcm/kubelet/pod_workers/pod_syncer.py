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
    """Does the work of each phase of a pod. Whatever a method raises is tried again later."""

    def sync_pod(
        self,
        context: SyncContext,
        update_type: SyncPodType,
        pod: Pod,
        mirror: Pod | None,
        view: PodView,
    ) -> bool:
        """Makes the pod run; returns True if it has come to its end by itself."""
        ...

    def sync_terminating_pod(
        self,
        context: SyncContext,
        pod: Pod,
        view: PodView,
        grace: int | None,
        update_status: Callable[[PodStatus], PodStatus] | None,
    ) -> None:
        """Ends all containers of the pod, in `grace` seconds if that is given.

        `update_status` changes the status that is reported of the pod.
        """
        ...

    def sync_terminating_runtime_pod(self, context: SyncContext, pod: RuntimePod) -> None:
        """Ends all containers of a pod that only the runtime knows."""
        ...

    def sync_terminated_pod(self, context: SyncContext, pod: Pod, view: PodView) -> None:
        """Removes what is left of a pod whose containers have ended."""
        ...
