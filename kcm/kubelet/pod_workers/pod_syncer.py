"""The interface of what pod workers do to a pod in each phase; `syncer.Syncer` implements it.

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
    """Does the work of each phase of a pod. If a method raises, it is called again later."""

    def sync_pod(
        self,
        context: SyncContext,
        update_type: SyncPodType,
        pod: Pod,
        mirror: Pod | None,
        view: PodView,
    ) -> bool:
        """Makes the pod run. Returns True if the pod has ended by itself."""
        ...

    def sync_terminating_pod(
        self,
        context: SyncContext,
        pod: Pod,
        view: PodView,
        grace: int | None,
        update_status: Callable[[PodStatus], PodStatus] | None,
    ) -> None:
        """Kills all containers of the pod, with a grace period of `grace` seconds if that is given.

        `update_status` is applied to the pod status before it is reported.
        """
        ...

    def sync_terminating_runtime_pod(self, context: SyncContext, pod: RuntimePod) -> None:
        """Kills all containers of a pod that only the runtime knows."""
        ...

    def sync_terminated_pod(self, context: SyncContext, pod: Pod, view: PodView) -> None:
        """Cleans up a pod whose containers have ended."""
        ...
