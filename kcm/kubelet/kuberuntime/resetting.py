"""Which containers are removed before all of them start again: pure functions.

Source: getContainersToReset in pkg/kubelet/kuberuntime/kuberuntime_manager.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import Container, Pod
from kcm.api.pods.restarts import restarts_all_after
from kcm.kubelet.cri import RuntimeContainerState
from kcm.kubelet.kuberuntime.view import ContainerView, PodView


def list_resets(pod: Pod, view: PodView) -> list[ContainerView]:
    """Returns all attempts of the pod's containers, in the order in which they are removed.

    Those whose exit asked for the restart come last, so that the kubelet sees it until the end.
    """
    mains, main_causes = _split(pod.spec.containers, view)
    inits, init_causes = _split(pod.spec.init_containers or (), view)
    return [*mains, *inits, *main_causes, *init_causes]


def _split(
    containers: Iterable[Container], view: PodView
) -> tuple[list[ContainerView], list[ContainerView]]:
    """Returns the attempts of these containers, and those whose exit asked for the restart."""
    others: list[ContainerView] = []
    causes: list[ContainerView] = []
    for container in containers:
        for attempt in view.containers:
            if attempt.name == container.name:
                ended = attempt.state is RuntimeContainerState.EXITED
                is_cause = ended and restarts_all_after(container, attempt.exit_code)
                (causes if is_cause else others).append(attempt)
    return others, causes
