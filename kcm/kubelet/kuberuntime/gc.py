"""Garbage collection: removes dead containers, and sandboxes that are no longer needed.

Source: pkg/kubelet/kuberuntime/kuberuntime_gc.go and pkg/kubelet/pod_container_deletor.go,
Kubernetes 1.33, with the defaults of its flags: the newest dead container of each name is kept
while its pod is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from kcm import errors
from kcm.kubelet import cri
from kcm.kubelet.files.folders import remove_tree
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.kuberuntime.view import ContainerView, PodView

log = structlog.get_logger("kcm.kubelet")

_PARTS_OF_LOG_FOLDER = 3  # namespace, name and uid of the pod; see `configs.log_directory`
KEPT_PER_NAME = 1  # dead containers that are kept for each pod and container name


class PodStateProvider(Protocol):
    """Reports what can be removed of a pod, by its uid."""

    def should_content_be_removed(self, uid: str) -> bool:
        """Reports whether the pod was deleted or evicted, and has terminated."""
        ...

    def should_runtime_be_removed(self, uid: str) -> bool:
        """Reports whether the pod is unknown, or has terminated."""
        ...


def find_deletable_containers(
    view: PodView, exited_id: str, remove_all: bool
) -> list[ContainerView]:
    """Returns the dead containers of a pod to remove after the container `exited_id` has exited.

    With `remove_all` these are all of the pod, else all but the newest of the same container name.
    """
    dead = [c for c in view.containers if c.state is cri.RuntimeContainerState.EXITED]
    if remove_all:
        return dead
    names = {container.name for container in dead if container.id == exited_id}
    of_same_name = [container for container in dead if container.name in names]
    return of_same_name[KEPT_PER_NAME:]


def find_evictable_containers(
    containers: Iterable[cri.RuntimeContainer], pods: PodStateProvider
) -> list[cri.RuntimeContainer]:
    """Returns the dead containers to remove, of all containers of the node.

    One that was created may be started yet, unless its pod is gone or has terminated.
    """
    groups: dict[tuple[str, str], list[cri.RuntimeContainer]] = defaultdict(list)
    for container in containers:
        if container.state is not cri.RuntimeContainerState.RUNNING:
            uid = container.labels.get(labels.POD_UID, "")
            groups[uid, container.name].append(container)
    evictable: list[cri.RuntimeContainer] = []
    for (uid, _), dead in groups.items():
        dead.sort(key=lambda container: container.created_at, reverse=True)
        evictable += dead if pods.should_content_be_removed(uid) else dead[KEPT_PER_NAME:]
    return [
        container
        for container in evictable
        if container.state is not cri.RuntimeContainerState.CREATED
        or pods.should_runtime_be_removed(container.labels.get(labels.POD_UID, ""))
    ]


def find_evictable_sandboxes(
    sandboxes: Sequence[cri.Sandbox],
    containers: Iterable[cri.RuntimeContainer],
    pods: PodStateProvider,
) -> list[cri.Sandbox]:
    """Returns the sandboxes to remove: those that are not ready and have no containers.

    The newest sandbox of a pod is kept until `should_runtime_be_removed`.
    """
    used = {container.sandbox_id for container in containers}
    by_pod: dict[str, list[cri.Sandbox]] = defaultdict(list)
    for sandbox in sandboxes:
        by_pod[sandbox.config.uid].append(sandbox)
    evictable: list[cri.Sandbox] = []
    for uid, group in by_pod.items():
        group.sort(key=lambda sandbox: sandbox.created_at, reverse=True)
        candidates = group if pods.should_runtime_be_removed(uid) else group[1:]
        evictable += [
            sandbox
            for sandbox in candidates
            if sandbox.id not in used and sandbox.state is not cri.SandboxState.READY
        ]
    return evictable


def collect_garbage(runtime: cri.Runtime, pods: PodStateProvider, logs_dir: Path) -> None:
    """Removes dead containers and sandboxes, and logs of pods that are gone.

    Failures are logged, and retried by the next call.
    """
    for container in find_evictable_containers(runtime.list_containers(), pods):
        remove_container(runtime, container.id)
    sandboxes, containers = runtime.list_pod_sandboxes(), runtime.list_containers()
    for sandbox in find_evictable_sandboxes(sandboxes, containers, pods):
        try:
            runtime.remove_pod_sandbox(sandbox.id)
        except errors.ContainerRuntimeError as error:
            log.warning("sandbox was not removed", sandbox=sandbox.id, error=str(error))
    for folder in find_evictable_logs(logs_dir, pods):
        try:
            remove_tree(folder)
        except OSError as error:
            log.warning("logs were not removed", folder=str(folder), error=str(error))


def find_evictable_logs(logs_dir: Path, pods: PodStateProvider) -> list[Path]:
    """Returns the log folders of pods that are gone.

    A runtime removes the log of a container with it, but a kubelet may be killed in between.
    """
    folders = [*logs_dir.iterdir()] if logs_dir.is_dir() else []
    named = [(folder, folder.name.split("_")) for folder in folders]
    return [
        folder
        for folder, names in named
        if len(names) == _PARTS_OF_LOG_FOLDER and pods.should_content_be_removed(names[-1])
    ]


def remove_container(runtime: cri.Runtime, container_id: str) -> None:
    """Removes a dead container and its log. A failure is logged."""
    try:
        runtime.remove_container(container_id)
    except errors.ContainerRuntimeError as error:
        log.warning("container was not removed", container=container_id, error=str(error))
