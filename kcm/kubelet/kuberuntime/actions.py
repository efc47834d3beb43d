"""Computes the containers to start and to kill so that a pod matches its spec: pure functions.

Source: computePodActions and computeInitContainerActions in
pkg/kubelet/kuberuntime/kuberuntime_manager.go and kuberuntime_container.go, PodSandboxChanged in
pkg/kubelet/kuberuntime/util/util.go, ShouldContainerBeRestarted in
pkg/kubelet/container/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kcm.api.core_v1 import Container, Pod
from kcm.api.pods.restarts import restarts_after
from kcm.helpers.pods import is_sidecar
from kcm.kubelet import resizing
from kcm.kubelet.cri import Resources, RuntimeContainerState, SandboxState
from kcm.kubelet.kuberuntime.configs import build_resources
from kcm.kubelet.kuberuntime.labels import hash_of
from kcm.kubelet.kuberuntime.view import ContainerView, PodView

_RUNNING, _EXITED = RuntimeContainerState.RUNNING, RuntimeContainerState.EXITED
_NOT_RUNNING_ANY_MORE = (_EXITED, RuntimeContainerState.UNKNOWN)


@dataclass(frozen=True)
class ContainerKill:
    """A container to kill, and why."""

    container: Container
    id: str
    message: str
    reason: str = ""  # "LivenessProbe", "StartupProbe", "Unknown" or ""


@dataclass(frozen=True)
class ContainerUpdate:
    """A running container that gets other resources."""

    container: Container
    id: str
    resources: Resources


@dataclass
class PodActions:
    """What a sync of a pod has to do. Containers are given by their indexes in the spec."""

    kill_pod: bool = False
    create_sandbox: bool = False
    sandbox_id: str = ""
    attempt: int = 0
    ephemeral_to_start: list[int] = field(default_factory=list)
    init_to_start: list[int] = field(default_factory=list)
    to_start: list[int] = field(default_factory=list)
    to_kill: list[ContainerKill] = field(default_factory=list)
    to_update: list[ContainerUpdate] = field(default_factory=list)


@dataclass(frozen=True)
class ContainerHealth:
    """The functions that return a container's probe results by its id; None means unknown."""

    liveness: Callable[[str], bool | None] = lambda _: None
    startup: Callable[[str], bool | None] = lambda _: None


def sandbox_changed(pod: Pod, view: PodView) -> tuple[bool, int, str]:
    """Returns whether the pod needs a new sandbox, its attempt, and the id of the present sandbox.

    If no new one is needed, the attempt is that of the present sandbox. The id is "" if there is
    none.
    """
    if not view.sandboxes:
        return True, 0, ""
    newest = view.sandboxes[0]
    ready = sum(sandbox.state is SandboxState.READY for sandbox in view.sandboxes)
    changed = (
        ready > 1
        or newest.state is not SandboxState.READY
        or newest.config.host_network != bool(pod.spec.host_network)
        or not (newest.ip or pod.spec.host_network)
    )
    return changed, newest.config.attempt + changed, newest.id


def should_restart(container: Container, pod: Pod, view: PodView) -> bool:
    """Reports whether a container has to be started, by its state and the pod's restart policy."""
    if pod.deleting:
        return False
    newest = view.find(container.name)
    if newest is None:
        return True
    if newest.state is _RUNNING:
        return False
    if newest.state is not _EXITED or is_sidecar(container):
        return True
    return restarts_after(container, pod.spec, newest.exit_code)


def has_initialized(pod: Pod, view: PodView) -> bool:
    """Reports whether any main container was ever created.

    They are created after init containers.
    """
    return any(view.find(container.name) is not None for container in pod.spec.containers)


def compute_pod_actions(
    pod: Pod, view: PodView, health: ContainerHealth | None = None
) -> PodActions:
    """Returns what a sync has to do. Without `health`, no probe results are known."""
    changed, attempt, sandbox_id = sandbox_changed(pod, view)
    actions = PodActions(changed, changed, sandbox_id, attempt)
    if changed:
        _restart_in_new_sandbox(pod, view, actions)
        return actions
    # They start whether or not the init containers are done, and are never restarted.
    ephemeral = pod.spec.ephemeral_containers or ()
    actions.ephemeral_to_start = [
        index for index, container in enumerate(ephemeral) if view.find(container.name) is None
    ]
    checks = health or ContainerHealth()
    if not _InitContainers(pod, view, checks, actions).compute() or actions.kill_pod:
        return actions
    keep = sum(_decide_main(pod, view, checks, actions, index) for index in _main_indices(pod))
    if not keep and not actions.to_start:
        # No main container runs or will run: sidecars must not keep the pod alive.
        actions.kill_pod = True
        actions.init_to_start = []
    return actions


def _main_indices(pod: Pod) -> range:
    return range(len(pod.spec.containers))


def _restart_in_new_sandbox(pod: Pod, view: PodView, actions: PodActions) -> None:
    """Sets the containers to start in a new sandbox, or that none is created."""
    policy = pod.spec.restart_policy
    if policy == "Never" and actions.attempt and view.containers:
        actions.create_sandbox = False
        return
    wanted = [index for index in _main_indices(pod) if not _is_over(pod, view, index)]
    if not wanted and has_initialized(pod, view):
        actions.create_sandbox = False
    elif pod.spec.init_containers:
        actions.init_to_start = [0]
    else:
        actions.to_start = wanted


def _is_over(pod: Pod, view: PodView, index: int) -> bool:
    """Reports whether a main container has succeeded and need not run in a new sandbox."""
    container = pod.spec.containers[index]
    policy = container.restart_policy or pod.spec.restart_policy
    return policy == "OnFailure" and _has_succeeded(view.find(container.name))


def _has_succeeded(container: ContainerView | None) -> bool:
    return container is not None and container.state is _EXITED and container.exit_code == 0


def _decide_main(
    pod: Pod, view: PodView, health: ContainerHealth, actions: PodActions, index: int
) -> bool:
    """Adds a main container to those to start or to kill; returns whether it keeps running."""
    container = pod.spec.containers[index]
    newest = view.find(container.name)
    if newest is None or newest.state is not _RUNNING:
        if should_restart(container, pod, view):
            actions.to_start.append(index)
            if newest is not None and newest.state is RuntimeContainerState.UNKNOWN:
                text = f"Container {container.name} is in unknown state"
                actions.to_kill.append(ContainerKill(container, newest.id, text, "Unknown"))
        return False
    fault = _find_fault(container, newest, health) or _resize(pod, container, newest, actions)
    if fault is None:
        return True
    message, reason = fault
    if not reason or pod.spec.restart_policy != "Never":
        message += ", will be restarted"
        actions.to_start.append(index)
    actions.to_kill.append(ContainerKill(container, newest.id, message, reason))
    return False


def find_resize(pod: Pod, container: Container, running: ContainerView) -> Resources | None:
    """Returns the resources that a running container is to get, None if it has them."""
    has = running.resources
    if has is None:
        return None
    wanted = build_resources(pod, container, 0)
    wanted = replace(wanted, pids=has.pids, oom_score_adj=has.oom_score_adj)
    return None if wanted == has else wanted


def is_resizing(pod: Pod, view: PodView) -> bool:
    """Reports whether a running container is yet to get other resources."""
    return any(
        running.state is _RUNNING and find_resize(pod, container, running) is not None
        for container in resizing.list_resizable(pod)
        if (running := view.find(container.name)) is not None
    )


def _resize(
    pod: Pod, container: Container, running: ContainerView, actions: PodActions
) -> tuple[str, str] | None:
    """Adds a container to those to update if its resources are to change.

    Returns the message and reason to kill it if it has to be restarted for that, otherwise None.
    """
    wanted, has = find_resize(pod, container, running), running.resources
    if wanted is None or has is None:
        return None
    changed = ["memory"] if wanted.memory_bytes != has.memory_bytes else []
    if (wanted.cpu_shares, wanted.cpu_quota) != (has.cpu_shares, has.cpu_quota):
        changed.append("cpu")
    if resizing.needs_restart(container, changed):
        return f"Container {container.name} resize requires restart", ""
    actions.to_update.append(ContainerUpdate(container, running.id, wanted))
    return None


def _find_fault(
    container: Container, running: ContainerView, health: ContainerHealth
) -> tuple[str, str] | None:
    """Returns the message and reason to kill a running container, or None if it can run on."""
    if running.hash != hash_of(container):
        return f"Container {container.name} definition changed", ""
    if health.liveness(running.id) is False:
        return f"Container {container.name} failed liveness probe", "LivenessProbe"
    if health.startup(running.id) is False:
        return f"Container {container.name} failed startup probe", "StartupProbe"
    return None


class _InitContainers:
    """Computes the actions for init containers: they run in turn, and sidecars are kept running."""

    def __init__(
        self, pod: Pod, view: PodView, health: ContainerHealth, actions: PodActions
    ) -> None:
        self._pod = pod
        self._view = view
        self._health = health
        self._actions = actions
        self._containers = pod.spec.init_containers or []

    def compute(self) -> bool:
        """Adds the actions for all init containers; returns whether main containers may run."""
        if not self._containers:
            return True
        done = has_initialized(self._pod, self._view)
        passed = done  # whether the containers up to this index have been started
        for index in reversed(range(len(self._containers))):
            if passed:
                self._keep_sidecar(index)
                continue
            newest = self._view.find(self._containers[index].name)
            if newest is not None:
                # The last one that was created: all before it have ended or are sidecars.
                done, passed = self._continue_after(index, newest), True
            if self._actions.kill_pod:
                self._actions.init_to_start = []
                return False
        if not passed:
            self._actions.init_to_start.append(0)
        self._actions.init_to_start.sort()
        return done

    def _continue_after(self, index: int, newest: ContainerView) -> bool:
        """Continues after the last created init container; returns whether all are done."""
        container = self._containers[index]
        if is_sidecar(container):
            goes_on = self._run_sidecar(index, newest)
        elif newest.state is _RUNNING:
            return False
        elif newest.state is _EXITED and newest.exit_code == 0:
            goes_on = True
        elif newest.state in _NOT_RUNNING_ANY_MORE and not self._restarts(container, newest):
            self._actions.kill_pod = True
            return False
        else:
            self._restart(index, newest)
            return False
        if goes_on and index + 1 < len(self._containers):
            self._actions.init_to_start.append(index + 1)
            return False
        return goes_on

    def _restarts(self, container: Container, newest: ContainerView) -> bool:
        """Reports whether an init container that failed, or is in an unknown state, restarts."""
        if newest.state is _EXITED:
            return restarts_after(container, self._pod.spec, newest.exit_code)
        return (container.restart_policy or self._pod.spec.restart_policy) != "Never"

    def _keep_sidecar(self, index: int) -> None:
        """Starts or restarts an earlier init container if it is a sidecar that should run."""
        container = self._containers[index]
        if not is_sidecar(container):
            return
        newest = self._view.find(container.name)
        if newest is None:
            self._actions.init_to_start.append(index)
        else:
            self._run_sidecar(index, newest)

    def _run_sidecar(self, index: int, newest: ContainerView) -> bool:
        """Keeps a sidecar running; returns whether it has started, and passes its startup probe."""
        container = self._containers[index]
        if newest.state is not _RUNNING:
            self._restart(index, newest)
            return False
        if container.startup_probe is not None:
            startup = self._health.startup(newest.id)
            if startup is not True:
                if startup is False:
                    self._kill_and_restart(index, newest, "failed startup probe", "StartupProbe")
                return False
        if newest.hash != hash_of(container):
            self._kill_and_restart(index, newest, "definition changed", "")
        elif self._health.liveness(newest.id) is False:
            self._kill_and_restart(index, newest, "failed liveness probe", "LivenessProbe")
        elif _resize(self._pod, container, newest, self._actions) is not None:
            self._kill_and_restart(index, newest, "resize requires restart", "")
        else:
            return True
        return True

    def _restart(self, index: int, newest: ContainerView) -> None:
        if newest.state is RuntimeContainerState.UNKNOWN:
            self._kill_and_restart(index, newest, "is in unknown state", "Unknown")
        else:
            self._actions.init_to_start.append(index)

    def _kill_and_restart(self, index: int, newest: ContainerView, why: str, reason: str) -> None:
        container = self._containers[index]
        text = f"Init container {container.name} {why}"
        self._actions.to_kill.append(ContainerKill(container, newest.id, text, reason))
        self._actions.init_to_start.append(index)
