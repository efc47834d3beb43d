"""The runtime manager: lists the runtime's pods, and syncs and kills their containers.

Source: pkg/kubelet/kuberuntime/kuberuntime_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from kcm import errors
from kcm.api.core_v1 import Container, Pod
from kcm.clock import Clock
from kcm.helpers.backoff import Backoff
from kcm.helpers.pods import is_sidecar
from kcm.kubelet import cri
from kcm.kubelet.environment.variables import Lookups, PodLocation
from kcm.kubelet.kuberuntime import gc, labels, messages
from kcm.kubelet.kuberuntime.actions import (
    ContainerHealth,
    PodActions,
    compute_pod_actions,
)
from kcm.kubelet.kuberuntime.configs import build_sandbox_config
from kcm.kubelet.kuberuntime.images import NodeImages
from kcm.kubelet.kuberuntime.killing import ContainerKiller, ContainerTermination
from kcm.kubelet.kuberuntime.preparation import ContainerPreparation
from kcm.kubelet.kuberuntime.resetting import list_resets
from kcm.kubelet.kuberuntime.results import (
    RESIZE_ERROR,
    PodSyncResult,
    StartResult,
    build_crash_loop_result,
)
from kcm.kubelet.kuberuntime.security_context import (
    NOTHING_CHECKED,
    RuntimeSecurity,
    find_unenforced,
    find_unenforced_by_container,
)
from kcm.kubelet.kuberuntime.starting import ContainerStarter, PodSetup
from kcm.kubelet.kuberuntime.view import ContainerView, PodView, RuntimePod
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import format_pod
from kcm.kubelet.volumes.volumes import PodVolumes, Volumes

log = structlog.get_logger("kcm.kubelet")

_RUNNING = cri.RuntimeContainerState.RUNNING


class RuntimeManager:
    """Starts and kills the containers of pods, and reads them from the runtime.

    Thread-safe for different pods; syncs of one pod must not overlap.
    """

    def __init__(
        self,
        runtime: cri.Runtime,
        *,
        recorder: KubeletEventRecorder,
        volumes: Volumes,
        lookups: Lookups,
        logs_dir: Path,
        clock: Clock,
        locate: Callable[[tuple[str, ...]], PodLocation],
        health: ContainerHealth,
        backoff: Backoff | None = None,
        images: NodeImages | None = None,
        security: RuntimeSecurity = NOTHING_CHECKED,
        preparation: ContainerPreparation | None = None,
        seccomp_dir: Path = Path("/var/lib/kubelet/seccomp"),
    ) -> None:
        """`images` and `preparation` are as for ContainerStarter."""
        self.runtime = runtime
        self.backoff = backoff or Backoff(clock)
        self._health = health
        self._recorder = recorder
        self._logs_dir = logs_dir
        self._locate = locate
        self._preparation = preparation
        self._killer = ContainerKiller(runtime, recorder, clock)
        self._starter = ContainerStarter(
            runtime, self._killer, recorder,
            volumes=volumes, lookups=lookups, logs_dir=logs_dir, images=images,
            security=security, preparation=preparation, seccomp_dir=seccomp_dir,
        )  # fmt: skip

    # --- the actual state of pods

    def pods(self) -> dict[str, RuntimePod]:
        """Returns all pods that have a container or a sandbox in the runtime, by uid."""
        containers: dict[str, list[cri.RuntimeContainer]] = {}
        for container in self.runtime.list_containers():
            containers.setdefault(container.labels.get(labels.POD_UID, ""), []).append(container)
        sandboxes: dict[str, list[cri.Sandbox]] = {}
        for sandbox in self.runtime.list_pod_sandboxes():
            sandboxes.setdefault(sandbox.config.uid, []).append(sandbox)
        return {
            uid: _runtime_pod(uid, containers.get(uid, []), sandboxes.get(uid, []))
            for uid in {*containers, *sandboxes} - {""}
        }

    def view(self, pod: RuntimePod) -> PodView:
        """Returns the view of a pod: its sandboxes, and the statuses of its containers.

        Containers that were removed meanwhile are left out.
        """
        containers: list[ContainerView] = []
        for container in pod.containers:
            try:
                status = self.runtime.container_status(container.id)
                message = status.message
                if self._preparation is not None:
                    message = self._preparation.read_message(status)
                containers.append(_container_view(status, message))
            except errors.ContainerNotFound:
                continue
        containers.sort(key=lambda view: (view.created_at, view.restart_count), reverse=True)
        sandboxes = sorted(pod.sandboxes, key=lambda sandbox: sandbox.created_at, reverse=True)
        ready = [sandbox for sandbox in sandboxes if sandbox.state is cri.SandboxState.READY]
        ips = (ready[0].ip,) if ready and ready[0].ip else ()
        return PodView(pod.uid, pod.name, pod.namespace, ips, containers, sandboxes)

    def look_at(self, uid: str) -> PodView:
        """Returns the present view of a pod; an empty one if the runtime has nothing of the pod."""
        pod = self.pods().get(uid)
        return self.view(pod) if pod is not None else PodView(uid)

    # --- syncing pods

    def sync_pod(
        self, pod: Pod, view: PodView, volumes: PodVolumes, context: SyncContext
    ) -> PodSyncResult:
        """Starts and kills containers so that the pod matches its spec.

        Raises SyncCancelled. Other failures are in the result.
        """
        result = PodSyncResult()
        actions = compute_pod_actions(pod, view, self._health)
        try:
            self._kill_unwanted(pod, view, actions, context)
            context.check()
            if actions.kill_pod and not actions.create_sandbox:
                return result
        except errors.ContainerRuntimeError as error:
            result.error = str(error)
            return result
        try:
            config = self._build_sandbox_config(pod, actions.attempt)
            sandbox_id, ips = self._ensure_sandbox(pod, view, actions, config)
        except errors.ContainerRuntimeError as error:
            text = f"Failed to create pod sandbox: {error}"
            self._recorder.record_pod_event(pod, "Warning", "FailedCreatePodSandBox", text)
            result.error = str(error)
            return result
        setup = PodSetup(pod, sandbox_id, config, self._locate(ips), volumes)
        self._resize_containers(config, actions, result)
        self._start_containers(setup, view, actions, result, context)
        return result

    def remove_all_containers(self, pod: Pod, view: PodView, context: SyncContext) -> None:
        """Kills the pod's containers at once, and removes them, so that it begins again.

        Raises ContainerRuntimeError.
        """
        listed = {container.id: container for container in self.runtime.list_containers()}
        address = view.ips[0] if view.ips else ""
        for attempt in list_resets(pod, view):
            if attempt.state is not cri.RuntimeContainerState.EXITED and attempt.id in listed:
                termination = ContainerTermination(listed[attempt.id], pod, address)
                self._killer.kill(termination, 0, context)
            self.runtime.remove_container(attempt.id)

    def _resize_containers(
        self, config: cri.SandboxConfig, actions: PodActions, result: PodSyncResult
    ) -> None:
        """Gives running containers their new resources. A failure is in the result.

        The pod as a whole has no limit meanwhile, because a container may not have more than its
        pod, neither before nor after.
        """
        update = self.runtime.update_container_resources
        changes: list[tuple[str, Callable[[], None]]] = [
            (each.container.name, partial(update, each.id, each.resources))
            for each in actions.to_update
        ]
        if changes:
            limit, last = self.runtime.update_pod_sandbox_resources, changes[-1][0]
            unlimited = replace(config, resources=cri.Resources())
            changes = [(last, partial(limit, unlimited)), *changes, (last, partial(limit, config))]
        for name, change in changes:
            try:
                change()
            except errors.ContainerRuntimeError as error:
                result.starts.append(StartResult(name, RESIZE_ERROR, str(error)))

    def _kill_unwanted(
        self, pod: Pod, view: PodView, actions: PodActions, context: SyncContext
    ) -> None:
        """Kills the containers to kill, and removes dead init containers."""
        if actions.kill_pod:
            self.kill_pod(pod, view, None, context)
            if actions.create_sandbox:
                self._remove_dead_inits(pod, view, keep=0)
            return
        listed = {container.id: container for container in self.runtime.list_containers()}
        for kill in actions.to_kill:
            if kill.id in listed:
                address = view.ips[0] if view.ips else ""
                termination = ContainerTermination(
                    listed[kill.id], pod, address, kill.message, kill.reason
                )
                self._killer.kill(termination, None, context)
        self._remove_dead_inits(pod, view, keep=1)

    def _remove_dead_inits(self, pod: Pod, view: PodView, keep: int) -> None:
        """Removes the dead init containers of the pod except the newest `keep` of each name."""
        for container in pod.spec.init_containers or ():
            dead = [
                candidate
                for candidate in view.containers
                if candidate.name == container.name and candidate.state is not _RUNNING
            ]
            for candidate in dead[keep:]:
                gc.remove_container(self.runtime, candidate.id)

    def _build_sandbox_config(self, pod: Pod, attempt: int) -> cri.SandboxConfig:
        config = build_sandbox_config(pod, attempt, self._logs_dir)
        if self._preparation is None:
            return config
        return self._preparation.complete_sandbox(pod, config)

    def _ensure_sandbox(
        self, pod: Pod, view: PodView, actions: PodActions, config: cri.SandboxConfig
    ) -> tuple[str, tuple[str, ...]]:
        """Returns the id and IPs of the pod's sandbox. Creates it if needed."""
        if not actions.create_sandbox:
            return actions.sandbox_id, view.ips
        sandbox_id = self.runtime.run_pod_sandbox(config)
        if not view.sandboxes:
            self._starter.warn_of_unenforced(pod, find_unenforced(pod))
        created = [
            sandbox for sandbox in self.runtime.list_pod_sandboxes() if sandbox.id == sandbox_id
        ]
        return sandbox_id, tuple(sandbox.ip for sandbox in created if sandbox.ip)

    def _start_containers(
        self,
        setup: PodSetup,
        view: PodView,
        actions: PodActions,
        result: PodSyncResult,
        context: SyncContext,
    ) -> None:
        ephemeral = setup.pod.spec.ephemeral_containers or []
        for index in actions.ephemeral_to_start:
            context.check()
            unenforced = find_unenforced_by_container(setup.pod, ephemeral[index])
            self._starter.warn_of_unenforced(setup.pod, unenforced)
            result.starts.append(self._start_container(setup, ephemeral[index], view, context))
        inits = setup.pod.spec.init_containers or []
        for index in actions.init_to_start:
            context.check()
            started = self._start_container(setup, inits[index], view, context)
            result.starts.append(started)
            if started.reason and not is_sidecar(inits[index]):
                return
        for index in actions.to_start:
            context.check()
            container = setup.pod.spec.containers[index]
            result.starts.append(self._start_container(setup, container, view, context))

    def _start_container(
        self, setup: PodSetup, container: Container, view: PodView, context: SyncContext
    ) -> StartResult:
        waiting = self._do_backoff(setup.pod, container, view)
        if waiting is not None:
            return waiting
        return self._starter.start(setup, container, view, context)

    def _do_backoff(self, pod: Pod, container: Container, view: PodView) -> StartResult | None:
        """Returns a result if the container has to wait after its exit, else counts its exit."""
        dead = next(
            (
                candidate
                for candidate in view.containers
                if candidate.name == container.name
                and candidate.state is cri.RuntimeContainerState.EXITED
            ),
            None,
        )
        if dead is None or dead.finished_at is None:
            return None
        key = f"{format_pod(pod)}_{container.name}_{labels.hash_of(container)}"
        if not self.backoff.is_in_backoff(key, dead.finished_at):
            self.backoff.next(key, dead.finished_at)
            return None
        text = messages.build_restart_delayed(pod, container.name)
        self._recorder.record_pod_event(pod, "Warning", "BackOff", text, container.name)
        return build_crash_loop_result(pod, container.name, self.backoff.delay(key))

    # --- killing pods

    def kill_pod(
        self, pod: Pod | None, view: PodView, grace: int | None, context: SyncContext
    ) -> None:
        """Kills all containers of a pod, then stops its sandboxes.

        `grace` overrides the grace periods, in seconds. Raises ContainerRuntimeError.
        """
        ids = {container.id for container in view.containers}
        address = view.ips[0] if view.ips else ""
        terminations = [
            ContainerTermination(container, pod, address)
            for container in self.runtime.list_containers()
            if (container.id in ids or container.labels.get(labels.POD_UID) == view.uid)
            and container.state is _RUNNING
        ]
        self._killer.kill_all(terminations, grace, context)
        for sandbox in self.runtime.list_pod_sandboxes():
            if sandbox.config.uid == view.uid:
                self.runtime.stop_pod_sandbox(sandbox.id)

    def remove_dead_containers(self, view: PodView, exited_id: str, *, remove_all: bool) -> None:
        """Removes dead containers of a pod; see `gc.find_deletable_containers`."""
        for container in gc.find_deletable_containers(view, exited_id, remove_all):
            gc.remove_container(self.runtime, container.id)

    def collect_garbage(self, pods: gc.PodStateProvider) -> None:
        """Removes dead containers, sandboxes and logs of all pods; see `gc.collect_garbage`."""
        gc.collect_garbage(self.runtime, pods, self._logs_dir)


def _runtime_pod(
    uid: str, containers: list[cri.RuntimeContainer], sandboxes: list[cri.Sandbox]
) -> RuntimePod:
    if sandboxes:
        config = sandboxes[0].config
        return RuntimePod(uid, config.name, config.namespace, containers, sandboxes)
    first_labels = containers[0].labels
    return RuntimePod(
        uid,
        first_labels.get(labels.POD_NAME, ""),
        first_labels.get(labels.POD_NAMESPACE, ""),
        containers,
    )


def _container_view(status: cri.RuntimeContainerStatus, message: str) -> ContainerView:
    annotations = status.config.annotations
    return ContainerView(
        id=status.id,
        name=status.config.name,
        state=status.state,
        created_at=status.created_at,
        started_at=status.started_at,
        finished_at=status.finished_at,
        exit_code=status.exit_code,
        reason=status.reason,
        message=message,
        image=status.config.image,
        hash=annotations.get(labels.CONTAINER_HASH, ""),
        restart_count=labels.number(annotations, labels.RESTART_COUNT) or 0,
        log_path=status.log_path,
        image_id=status.image_id,
        resources=status.config.resources,
    )
