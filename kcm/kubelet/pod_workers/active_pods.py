"""The pods that count against the node's resources.

Source: GetActivePods, filterOutInactivePods and isAdmittedPodTerminal in
pkg/kubelet/kubelet_pods.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import Pod
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.status.phase import TERMINAL


class ActivePods:
    """Finds the active pods: those that have not ended. Thread-safe."""

    def __init__(self, pods: PodManager, states: PodStates, statuses: StatusManager) -> None:
        self._pods = pods
        self._states = states
        self._statuses = statuses

    def get_all(self) -> list[Pod]:
        """Returns the active pods of the node."""
        return self.filter(self._pods.pods())

    def filter(self, pods: Iterable[Pod]) -> list[Pod]:
        """Returns those of the given pods that are active."""
        return [pod for pod in pods if self._is_active(pod)]

    def is_terminal(self, pod: Pod) -> bool:
        """Reports whether the pod's phase is Succeeded or Failed, in the API or for the kubelet."""
        return pod.status.phase in TERMINAL or self._statuses.last(pod).phase in TERMINAL

    def _is_active(self, pod: Pod) -> bool:
        uid = pod.uid or ""
        if self._states.is_known_terminated(uid):
            return False
        # A terminating pod may still have running containers, whatever its phase.
        return not self.is_terminal(pod) or self._states.is_termination_requested(uid)
