"""Finds the pod, container or log that a request is about.

Source: pkg/kubelet/kubelet_pods.go (GetKubeletContainerLogs, validateContainerLogStatus,
findContainer), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kcm import errors
from kcm.api.core_v1 import ContainerStatus, Pod, PodStatus
from kcm.kubelet.cri import Runtime, RuntimeContainerState, SandboxState
from kcm.kubelet.kuberuntime.labels import POD_UID


@dataclass(frozen=True)
class NodePods:
    """The pods of this node: from the pod manager, with statuses by uid, and their containers."""

    pods: Callable[[], Iterable[Pod]]
    status: Callable[[str], PodStatus | None]
    runtime: Runtime

    def all(self) -> list[Pod]:
        """Returns every pod with its newest status."""
        return [self._with_status(pod) for pod in self.pods()]

    def _with_status(self, pod: Pod) -> Pod:
        status = self.status(pod.uid or "")
        return pod if status is None else pod.with_status(status)

    def get(self, namespace: str, name: str) -> Pod:
        """Returns a pod with its newest status. Raises NotFound."""
        for pod in self.pods():
            if (pod.namespace, pod.name) == (namespace, name):
                return self._with_status(pod)
        raise errors.NotFound(f'pod "{name}" not found', resource="pods", name=name)

    def find_running(self, pod: Pod, container: str) -> str:
        """Returns the id of a running container, for exec and attach. Raises NotFound."""
        containers = [
            candidate
            for candidate in self.runtime.list_containers()
            if candidate.labels.get(POD_UID) == pod.uid
            and candidate.name == container
            and candidate.state is RuntimeContainerState.RUNNING
        ]
        if not containers:
            raise errors.NotFound(
                f'container not found ("{container}")', resource="containers", name=container
            )
        return max(containers, key=lambda candidate: candidate.created_at).id

    def find_sandbox(self, pod: Pod) -> str:
        """Returns the id of the pod's ready sandbox. Raises NotFound."""
        sandboxes = [
            sandbox
            for sandbox in self.runtime.list_pod_sandboxes()
            if sandbox.config.uid == pod.uid and sandbox.state is SandboxState.READY
        ]
        if not sandboxes:
            raise errors.NotFound(f'pod "{pod.name}" is not running', resource="pods")
        return max(sandboxes, key=lambda sandbox: sandbox.created_at).id

    def find_logged(self, pod: Pod, container: str, *, previous: bool) -> str:
        """Returns the id of the container whose log is requested. Raises BadRequest."""
        reported = pod.status
        statuses = [
            *(reported.container_statuses or ()),
            *(reported.init_container_statuses or ()),
            *(reported.ephemeral_container_statuses or ()),
        ]
        status = next((candidate for candidate in statuses if candidate.name == container), None)
        if status is None:
            raise errors.BadRequest(f'container "{container}" in pod "{pod.name}" is not available')
        return choose_logged(pod.name or "", status, previous=previous)

    def log_path(self, container_id: str) -> str:
        """Returns the path of the log, "" if there is none. Raises ContainerNotFound."""
        return self.runtime.container_status(container_id).log_path

    def runs(self, container_id: str) -> bool:
        """Reports whether a container still runs, and so may write to its log."""
        try:
            state = self.runtime.container_status(container_id).state
        except errors.ContainerNotFound:
            return False
        return state is RuntimeContainerState.RUNNING


def choose_logged(pod: str, status: ContainerStatus, *, previous: bool) -> str:
    """Returns the id of the container attempt whose log is requested. Raises BadRequest.

    With `previous`, it is the attempt before the present one.
    """
    state, last = status.state, status.last_state
    before = last.terminated if last else None
    ended = state.terminated if state else None
    waits = state.waiting if state else None
    about = f'container "{status.name}" in pod "{pod}"'
    container_id = ""
    if previous:
        if before is None or not before.container_id:
            raise errors.BadRequest(f"previous terminated {about} not found")
        container_id = before.container_id
    elif state is not None and state.running is not None:
        container_id = status.container_id or ""
    elif ended is not None and ended.container_id:
        container_id = ended.container_id
    elif before is not None and before.container_id:
        container_id = before.container_id  # the container waits to be restarted
    elif ended is not None:
        raise errors.BadRequest(f"{about} is terminated")
    elif waits is not None and waits.reason:
        raise errors.BadRequest(f"{about} is waiting to start: {waits.reason}")
    if not container_id:
        raise errors.BadRequest(f"{about} is waiting to start - no logs yet")
    return container_id.rpartition("://")[2]
