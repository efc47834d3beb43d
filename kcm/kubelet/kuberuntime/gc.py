"""Removing what has ended: dead containers, sandboxes and logs that nobody needs.

Source: pkg/kubelet/kuberuntime/kuberuntime_gc.go, pkg/kubelet/pod_container_deletor.go,
Kubernetes 1.33, with the defaults of its flags: the newest dead container of each name is
kept while its pod is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from kcm import errors
from kcm.kubelet import cri
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.kuberuntime.view import ContainerView, PodView

log = structlog.get_logger("kcm.kubelet")

KEEP = 1  # dead containers of each name


@dataclass(frozen=True)
class Known:
    """What the kubelet says of pods, by uid."""

    content_may_go: Callable[[str], bool]  # deleted or evicted, and ended
    runtime_may_go: Callable[[str], bool]  # no longer known, or ended for good


def surplus(view: PodView, exited: str, remove_all: bool) -> list[ContainerView]:
    """The dead containers of a pod that go when one of them (its id, "" for any) has ended."""
    dead = [found for found in view.containers if found.state is cri.ContainerState.EXITED]
    if remove_all:
        return dead
    names = {found.name for found in dead if found.id == exited}
    same = [found for found in dead if found.name in names]
    return same[KEEP:]


def evictable(containers: Iterable[cri.Container], known: Known) -> list[cri.Container]:
    """Of all containers, the dead ones that go; of pods that are gone, each."""
    groups: dict[tuple[str, str], list[cri.Container]] = defaultdict(list)
    for container in containers:
        if container.state is not cri.ContainerState.RUNNING:
            uid = container.labels.get(labels.POD_UID, "")
            groups[uid, container.name].append(container)
    found: list[cri.Container] = []
    for (uid, _), dead in groups.items():
        dead.sort(key=lambda container: container.created_at, reverse=True)
        found += dead if known.content_may_go(uid) else dead[KEEP:]
    return [one for one in found if one.state is not cri.ContainerState.CREATED]


def idle_sandboxes(
    sandboxes: Sequence[cri.Sandbox], containers: Iterable[cri.Container], known: Known
) -> list[cri.Sandbox]:
    """Sandboxes without containers: all of pods that are gone, else all but the newest."""
    used = {container.sandbox_id for container in containers}
    by_pod: dict[str, list[cri.Sandbox]] = defaultdict(list)
    for sandbox in sandboxes:
        by_pod[sandbox.config.uid].append(sandbox)
    found: list[cri.Sandbox] = []
    for uid, group in by_pod.items():
        group.sort(key=lambda sandbox: sandbox.created_at, reverse=True)
        candidates = group if known.runtime_may_go(uid) else group[1:]
        found += [
            one
            for one in candidates
            if one.id not in used and one.state is not cri.SandboxState.READY
        ]
    return found


def collect(runtime: cri.Runtime, known: Known) -> None:
    """One round over the whole runtime; what fails is tried again in the next."""
    for container in evictable(runtime.list_containers(), known):
        remove_container(runtime, container.id)
    for sandbox in idle_sandboxes(runtime.list_pod_sandboxes(), runtime.list_containers(), known):
        try:
            runtime.remove_pod_sandbox(sandbox.id)
        except errors.ContainerRuntimeError as error:
            log.warning("sandbox was not removed", sandbox=sandbox.id, error=str(error))


def remove_container(runtime: cri.Runtime, container_id: str) -> None:
    """Remove a dead container and its log."""
    try:
        runtime.remove_container(container_id)
    except errors.ContainerRuntimeError as error:
        log.warning("container was not removed", container=container_id, error=str(error))
