"""Builds the statuses of a pod's containers: pure functions.

Source: convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    ResourceRequirements,
)
from kcm.helpers.pods import is_sidecar
from kcm.kubelet import cri
from kcm.kubelet.kuberuntime.actions import should_restart
from kcm.kubelet.kuberuntime.view import ContainerView, PodView
from kcm.kubelet.status.phase import RESTARTING_ALL, TERMINAL

WaitingReason = Callable[[str], tuple[str, str] | None]
"""Returns the reason and message why a container waits, by its name; None if it does not wait."""

UNKNOWN_REASON = "ContainerStatusUnknown"
NOT_LOCATED = "The container could not be located when the pod was terminated"
DELETED = (
    "The container could not be located when the pod was deleted.  The container used to be Running"
)
REMOVED = "The container is removed because RestartAllContainers in place"
_LOST_CODE = 137


@dataclass(frozen=True)
class ContainerStatusConverter:
    """Converts the runtime's view of one pod into container statuses."""

    pod: Pod
    view: PodView
    runtime_name: str  # precedes container ids
    waiting_reason: WaitingReason = lambda _: None
    restarts_all: bool = False  # whether all containers are removed, to start again

    def convert(
        self, containers: Sequence[Container], previous: Sequence[ContainerStatus], *, init: bool
    ) -> list[ContainerStatus]:
        """Returns a status for each container. `previous` are the statuses last reported.

        `init` says that these are the pod's init containers.
        """
        old = {status.name: status for status in previous}
        return [
            self._status(container, old.get(container.name), init=init) for container in containers
        ]

    def _status(
        self, container: Container, old: ContainerStatus | None, *, init: bool
    ) -> ContainerStatus:
        ours = [
            container_view
            for container_view in self.view.containers
            if container_view.name == container.name
        ]
        if not ours:
            return self._status_without_container(container, old, init=init)
        status = self._convert_existing(container, ours[0], old)
        if len(ours) > 1 and ours[1].state is cri.RuntimeContainerState.EXITED:
            status = status.replace(last_state=self._convert_state(ours[1]))
        return self._override_with_waiting(container, status, ours[0], init=init)

    def _status_without_container(
        self, container: Container, old: ContainerStatus | None, *, init: bool
    ) -> ContainerStatus:
        """Returns the status of a container that the runtime does not have."""
        first = "PodInitializing" if self.pod.spec.init_containers else "ContainerCreating"
        state = ContainerState(waiting=ContainerStateWaiting(reason=first))
        status = ContainerStatus(
            name=container.name,
            image=container.image or "",
            state=state,
            last_state=ContainerState(),
        )
        if old is not None:
            status = self._carry_over(container, status, old, init=init)
        why = self.waiting_reason(container.name)
        if why is None or (status.state and status.state.terminated):
            return status
        waits = ContainerStateWaiting(reason=why[0], message=why[1])
        return status.replace(state=ContainerState(waiting=waits))

    def _carry_over(
        self, container: Container, status: ContainerStatus, old: ContainerStatus, *, init: bool
    ) -> ContainerStatus:
        """Returns the status with what the old one says of a container that the runtime lost."""
        status = status.replace(
            restart_count=old.restart_count,
            last_state=old.last_state or ContainerState(),
        )
        state = old.state
        if self.restarts_all and state is not None and state.waiting is None:
            return _removed(status, old)
        if state is not None and state.terminated is not None:
            done = init and not is_sidecar(container) and state.terminated.exit_code == 0
            if done or self.pod.status.phase in TERMINAL:
                return old
            return status.replace(last_state=state)
        if state is not None and state.running is not None:
            ended = ContainerStateTerminated(
                reason=UNKNOWN_REASON, message=DELETED, exit_code=_LOST_CODE
            )
            # A container of a terminating pod is not started again.
            again = not self.pod.deleting
            return status.replace(
                last_state=ContainerState(terminated=ended),
                restart_count=old.restart_count + again,
            )
        return status

    def _convert_existing(
        self, container: Container, container_view: ContainerView, old: ContainerStatus | None
    ) -> ContainerStatus:
        runs = container_view.state is cri.RuntimeContainerState.RUNNING
        image = container_view.image or container.image or ""
        own = container.resources
        return ContainerStatus(
            name=container.name,
            state=self._convert_state(container_view),
            last_state=(old.last_state if old else None) or ContainerState(),
            ready=False,
            restart_count=_count_restarts(container_view, old),
            image=image,
            image_id=container_view.image_id or _image_id(image),
            container_id=f"{self.runtime_name}://{container_view.id}",
            started=False,
            allocated_resources=(own.requests or None) if runs else None,
            resources=ResourceRequirements(limits=own.limits, requests=own.requests)
            if runs and (own.limits or own.requests)
            else None,
        )

    def _convert_state(self, container_view: ContainerView) -> ContainerState:
        match container_view.state:
            case cri.RuntimeContainerState.RUNNING:
                return ContainerState(
                    running=ContainerStateRunning(started_at=container_view.started_at)
                )
            case cri.RuntimeContainerState.EXITED:
                return ContainerState(terminated=self._build_terminated_state(container_view))
        return ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))

    def _build_terminated_state(self, container_view: ContainerView) -> ContainerStateTerminated:
        return ContainerStateTerminated(
            exit_code=container_view.exit_code,
            reason=container_view.reason or None,
            message=container_view.message or None,
            started_at=container_view.started_at,
            finished_at=container_view.finished_at,
            container_id=f"{self.runtime_name}://{container_view.id}",
        )

    def _override_with_waiting(
        self,
        container: Container,
        status: ContainerStatus,
        container_view: ContainerView,
        *,
        init: bool,
    ) -> ContainerStatus:
        """Returns a waiting status for a container that should start again and has to wait.

        Returns other statuses unchanged.
        """
        if init and not is_sidecar(container) and _has_succeeded(container_view):
            return status
        if not should_restart(container, self.pod, self.view):
            return status
        why = self.waiting_reason(container.name)
        if why is None:
            return status
        ended = status.state is not None and status.state.terminated is not None
        waits = ContainerState(waiting=ContainerStateWaiting(reason=why[0], message=why[1]))
        return status.replace(state=waits, last_state=status.state if ended else status.last_state)


def _removed(status: ContainerStatus, old: ContainerStatus) -> ContainerStatus:
    """Returns the status of a container that was removed so that all can start again."""
    waits = ContainerStateWaiting(reason=RESTARTING_ALL, message=REMOVED)
    ended = ContainerStateTerminated(reason=RESTARTING_ALL, message=REMOVED, exit_code=_LOST_CODE)
    return status.replace(
        state=ContainerState(waiting=waits),
        last_state=ContainerState(terminated=ended),
        restart_count=old.restart_count + 1,
    )


def _count_restarts(container_view: ContainerView, old: ContainerStatus | None) -> int:
    """Returns how often a container was restarted, also if the runtime's attempts were removed."""
    if old is None:
        return container_view.restart_count
    runs = container_view.state is cri.RuntimeContainerState.RUNNING
    ended = old.state is not None and old.state.terminated is not None
    return max(container_view.restart_count, old.restart_count + (runs and ended))


def _has_succeeded(container_view: ContainerView) -> bool:
    return (
        container_view.state is cri.RuntimeContainerState.EXITED and container_view.exit_code == 0
    )


def _image_id(image: str) -> str:
    """Returns an id that depends on the image's name only, since there is no registry to ask."""
    digest = hashlib.sha256(image.encode()).hexdigest()
    return f"{image.partition('@')[0]}@sha256:{digest}" if image else ""


def terminate_statuses(
    pod: Pod, mains: Sequence[ContainerStatus], inits: Sequence[ContainerStatus]
) -> tuple[list[ContainerStatus] | None, list[ContainerStatus] | None]:
    """Returns the statuses of main and init containers, terminated if they may have run.

    Nobody knows how these containers ended, so that counts as a failure.
    """
    initialized, tried = _has_initialized(pod), _count_tried(inits)
    return (
        [_terminate_status(status) if initialized else status for status in mains] or None,
        [_terminate_status(status) if n < tried else status for n, status in enumerate(inits)]
        or None,
    )


def _terminate_status(status: ContainerStatus) -> ContainerStatus:
    if status.state is not None and status.state.terminated is not None:
        return status
    ended = ContainerStateTerminated(
        reason=UNKNOWN_REASON, message=NOT_LOCATED, exit_code=_LOST_CODE
    )
    return status.replace(state=ContainerState(terminated=ended))


def _has_initialized(pod: Pod) -> bool:
    if not pod.spec.init_containers:
        return True
    for status in pod.status.container_statuses or ():
        last = status.last_state.terminated if status.last_state else None
        if last is not None or not (status.state and status.state.waiting):
            return True
    final = (pod.status.init_container_statuses or [])[-1:]
    return any(
        state is not None and state.terminated is not None and state.terminated.exit_code == 0
        for status in final
        for state in (status.last_state, status.state)
    )


def _count_tried(inits: Sequence[ContainerStatus]) -> int:
    """Returns how many init containers were started, counted from the first; at least one."""
    for n in range(len(inits), 0, -1):
        state, last = inits[n - 1].state, inits[n - 1].last_state
        if not (state and state.waiting) or (last is not None and last.terminated):
            return n
    return min(len(inits), 1)
