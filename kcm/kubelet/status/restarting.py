"""Whether all containers of a pod are being restarted: pure functions.

A rule of a container that has ended asks for that. All containers are then killed and removed, and
the pod begins again in its sandbox, with its init containers.

Source: ShouldAllContainersRestart and AllContainersRestartCleanedUp in
pkg/kubelet/container/helpers.go, GenerateAllContainersRestartingCondition in
pkg/kubelet/status/generate.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcm.api.core_v1 import Container, ContainerStatus, Pod, PodCondition, PodStatus
from kcm.api.pods.restarts import may_restart_all, restarts_all_after
from kcm.kubelet import cri
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.status.conditions import ALL_RESTARTING
from kcm.kubelet.status.phase import FAILED, SUCCEEDED

_REASONS = {FAILED: "PodFailed", SUCCEEDED: "PodCompleted"}  # of pods that have ended


def is_restarting_all(pod: Pod, old: PodStatus, view: PodView) -> bool:
    """Reports whether all containers have to start again. `old` is the status last reported."""
    if not may_restart_all(pod.spec):
        return False
    if has_begun(old):
        return True
    return any(
        restarts_all_after(container, code)
        for container in _list_containers(pod)
        for code in _exit_codes(container, old, view)
    )


def build_restarting(
    pod: Pod, view: PodView, phase: str, *, asked: bool
) -> tuple[PodCondition, ...]:
    """Returns the condition of a pod that has a rule for it. It ends when no container is left.

    `asked` is the answer of `is_restarting_all`.
    """
    if not may_restart_all(pod.spec):
        return ()
    if phase in _REASONS:
        return (PodCondition(type=ALL_RESTARTING, status="False", reason=_REASONS[phase]),)
    gone = all(view.find(container.name) is None for container in _list_containers(pod))
    if gone or not asked:
        return (PodCondition(type=ALL_RESTARTING, status="False"),)
    return (
        PodCondition(
            type=ALL_RESTARTING,
            status="True",
            reason="RestartAllContainersStarted",
            message="container exited with restart policy rule",
        ),
    )


def has_begun(status: PodStatus) -> bool:
    """Reports whether a status says that all containers are being restarted."""
    return any(
        one.type == ALL_RESTARTING and one.status == "True" for one in status.conditions or ()
    )


def _list_containers(pod: Pod) -> list[Container]:
    return [*(pod.spec.init_containers or ()), *pod.spec.containers]


def _exit_codes(container: Container, old: PodStatus, view: PodView) -> Iterator[int]:
    """Yields the codes with which a container has ended, by the runtime and by the old status.

    It yields none unless the runtime says that the container has ended.
    """
    newest = view.find(container.name)
    if newest is None or newest.state is not cri.RuntimeContainerState.EXITED:
        return
    yield newest.exit_code
    statuses: list[ContainerStatus] = [
        *(old.init_container_statuses or ()),
        *(old.container_statuses or ()),
    ]
    for status in statuses:
        ended = status.state.terminated if status.state else None
        if status.name == container.name and ended is not None:
            yield ended.exit_code
