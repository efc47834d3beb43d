"""Builds pods as a runtime shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kcm.api.core_v1 import Container, Pod
from kcm.api.core_v1.handlers import Probe
from kcm.kubelet.cri import RuntimeContainerState, Sandbox, SandboxConfig, SandboxState
from kcm.kubelet.kuberuntime.labels import hash_of
from kcm.kubelet.kuberuntime.view import ContainerView, PodView
from kcm.testing.builders import pod as build_pod

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
STATES = {
    "running": RuntimeContainerState.RUNNING,
    "created": RuntimeContainerState.CREATED,
    "unknown": RuntimeContainerState.UNKNOWN,
}


def container(name: str, *, sidecar: bool = False, startup: bool = False) -> Container:
    """Returns a container with that name."""
    return Container(
        name=name,
        image="x",
        restart_policy="Always" if sidecar else None,
        startup_probe=Probe() if startup else None,
    )


def pod(*names: str, init: str = "", policy: str = "Always", **more: Any) -> Pod:
    """Returns a pod with these containers.

    `init` names the init containers. A `*` after the name makes it a sidecar, a `?` gives it a
    startup probe.
    """
    inits = [
        container(word.strip("*?"), sidecar="*" in word, startup="?" in word)
        for word in init.split()
    ]
    return build_pod(
        "web",
        containers=[container(name) for name in names or ("main",)],
        init_containers=inits or None,
        restart_policy=policy,
        **more,
    )


def container_view(name: str, state: str, at: float = 0.0) -> ContainerView:
    """Returns a container whose state is running, created, unknown, or an exit code."""
    exited = state not in STATES
    return ContainerView(
        id=f"{name}-id",
        name=name,
        state=RuntimeContainerState.EXITED if exited else STATES[state],
        created_at=NOW + timedelta(seconds=at),
        started_at=NOW,
        finished_at=NOW if exited else None,
        exit_code=int(state) if exited else 0,
        hash=hash_of(container(name)),
        reason="Completed" if state == "0" else "Error" if exited else "",
    )


def sandbox(*, ready: bool = True, attempt: int = 0, ip: str = "127.64.0.1") -> Sandbox:
    config = SandboxConfig(name="web", namespace="default", uid="u", attempt=attempt)
    state = SandboxState.READY if ready else SandboxState.NOT_READY
    return Sandbox(f"box-{attempt}", config, state, NOW, ip if ready else "")


def view(states: str = "", *sandboxes: Sandbox) -> PodView:
    """Returns a pod with the containers that `states` lists, such as `main=running init=0`.

    It has one ready sandbox unless others are given.
    """
    pairs = [word.partition("=") for word in states.split()]
    containers = [container_view(name, state) for name, _, state in pairs]
    pod_sandboxes = sandboxes or (sandbox(),)
    ips = tuple(box.ip for box in pod_sandboxes[:1] if box.ip)
    return PodView("u", "web", "default", ips, containers, pod_sandboxes)
