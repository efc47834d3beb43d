"""Starts a container: prepares its environment and mounts, creates it, runs its postStart hook.

Source: startContainer in pkg/kubelet/kuberuntime/kuberuntime_container.go, Kubernetes 1.36. For
runtimes without images, image names are only reported, nothing is pulled, and imagePullPolicy has
no effect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kcm import errors
from kcm.api.core_v1 import Container, Pod
from kcm.kubelet import cri
from kcm.kubelet.environment.store_lookups import StaticPodLookups
from kcm.kubelet.environment.variables import Lookups, PodLocation, make_environment
from kcm.kubelet.images.store import ImageUser
from kcm.kubelet.kuberuntime import messages
from kcm.kubelet.kuberuntime.configs import (
    ContainerContext,
    build_container_config,
    log_directory,
)
from kcm.kubelet.kuberuntime.hooks import HookTarget, run_hook
from kcm.kubelet.kuberuntime.images import NodeImages
from kcm.kubelet.kuberuntime.isolation import name_target
from kcm.kubelet.kuberuntime.killing import ContainerKiller, ContainerTermination
from kcm.kubelet.kuberuntime.preparation import ContainerPreparation
from kcm.kubelet.kuberuntime.results import (
    CONFIG_ERROR,
    CREATE_ERROR,
    HOOK_ERROR,
    RUN_ERROR,
    StartResult,
)
from kcm.kubelet.kuberuntime.security_context import (
    REFUSE,
    WARN,
    RuntimeSecurity,
    find_unenforced_by_container,
    find_unenforced_by_pod,
)
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import is_static_pod
from kcm.kubelet.volumes.volumes import PodVolumes, Volumes, read_volume_file
from kcm.loops import start_thread


@dataclass(frozen=True)
class PodSetup:
    """A pod whose containers can be started: its sandbox, its location and its volumes.

    `sandbox` is the configuration that the sandbox was made with.
    """

    pod: Pod
    sandbox_id: str
    sandbox: cri.SandboxConfig
    location: PodLocation
    volumes: PodVolumes

    @property
    def address(self) -> str:
        """The pod's first IP, or "" if it has none."""
        return self.location.pod_ips[0] if self.location.pod_ips else ""


class ContainerStarter:
    """Starts containers of pods whose sandbox and volumes exist. Thread-safe."""

    def __init__(
        self,
        runtime: cri.Runtime,
        killer: ContainerKiller,
        recorder: KubeletEventRecorder,
        *,
        volumes: Volumes,
        lookups: Lookups,
        logs_dir: Path,
        images: NodeImages | None = None,
        security: RuntimeSecurity,
        preparation: ContainerPreparation | None = None,
        seccomp_dir: Path = Path("/var/lib/kubelet/seccomp"),
    ) -> None:
        """`images` is None if the runtime has no images, so that nothing is pulled. `preparation`
        is None if it prepares its containers' files itself.
        """
        self._runtime = runtime
        self._killer = killer
        self._recorder = recorder
        self._volumes = volumes
        self._lookups = lookups
        self._logs_dir = logs_dir
        self._images = images
        self._security = security
        self._preparation = preparation
        self._seccomp_dir = seccomp_dir

    def start(
        self, setup: PodSetup, container: Container, view: PodView, context: SyncContext
    ) -> StartResult:
        """Starts a container. If that fails, the result has the reason.

        Raises SyncCancelled while it waits for the postStart hook.
        """
        pod, name = setup.pod, container.name
        if self._images is not None and (missing := self._images.ensure(pod, container)):
            return missing
        restarts = self._count_restarts(pod, container, view)
        try:
            config = self._build_config(setup, container, restarts, view)
        except (errors.ContainerConfigError, errors.Temporary) as error:
            return self._record_failure(pod, StartResult(name, CONFIG_ERROR, str(error)))
        try:
            container_id = self._runtime.create_container(setup.sandbox_id, config, setup.sandbox)
        except errors.ContainerConfigError as error:
            return self._record_failure(pod, StartResult(name, CONFIG_ERROR, str(error)))
        except errors.ContainerRuntimeError as error:
            return self._record_failure(pod, StartResult(name, CREATE_ERROR, str(error)))
        self._recorder.record_pod_event(
            pod, "Normal", "Created", messages.build_created(name), name
        )
        try:
            self._runtime.start_container(container_id)
        except errors.ContainerRuntimeError as error:
            return self._record_failure(pod, StartResult(name, RUN_ERROR, str(error)))
        self._recorder.record_pod_event(
            pod, "Normal", "Started", messages.build_started(name), name
        )
        return self._run_post_start(setup, container, container_id, config, context)

    def _build_config(
        self, setup: PodSetup, container: Container, restarts: int, view: PodView
    ) -> cri.ContainerConfig:
        pod, location = setup.pod, setup.location
        self._refuse_unenforced(pod, container)
        lookups = StaticPodLookups(self._lookups) if is_static_pod(pod) else self._lookups
        read_file = partial(read_volume_file, setup.volumes)
        environment = make_environment(pod, container, lookups, location, read_file=read_file)
        mounts = self._volumes.mounts(pod, container, setup.volumes, environment)
        if self._preparation is not None:
            mounts = self._preparation.add_mounts(pod, container, location.pod_ips, mounts)
        memory = location.allocatable.get("memory")
        context = ContainerContext(
            memory_capacity=memory.value() if memory else 0,
            user=self._find_user(container),
            has_images=self._images is not None and self._images.store is not None,
            seccomp_dir=self._seccomp_dir,
            target_id=_find_target(container, view),
        )
        return build_container_config(
            pod, container, restarts, environment, mounts, context=context
        )

    def _find_user(self, container: Container) -> ImageUser:
        """Returns the user of a container whose pod names none."""
        if self._images is None or self._images.store is None:
            return self._security.default_user
        image = self._images.store.find(container.image or "")
        return image.user if image is not None else ImageUser()

    def warn_of_unenforced(self, pod: Pod, unenforced: Sequence[str]) -> None:
        """Records an Event about security settings that are not enforced, if there are any."""
        if unenforced and self._security.unenforced == WARN:
            text = messages.build_unenforced(unenforced)
            self._recorder.record_pod_event(pod, "Warning", messages.UNENFORCED, text)

    def _refuse_unenforced(self, pod: Pod, container: Container) -> None:
        """Raises ContainerConfigError for what cannot be enforced, where that is refused."""
        if self._security.unenforced != REFUSE:
            return
        unenforced = [*find_unenforced_by_pod(pod), *find_unenforced_by_container(pod, container)]
        if unenforced:
            raise errors.ContainerConfigError(
                f"{messages.build_unenforced(unenforced)} (--unenforced-security=refuse)"
            )

    def _count_restarts(self, pod: Pod, container: Container, view: PodView) -> int:
        """Returns how many times the container was started before.

        If the runtime has removed all of its attempts, the number comes from the names of its logs.
        """
        newest = view.find(container.name)
        if newest is not None:
            return newest.restart_count + 1
        folder = log_directory(self._logs_dir, pod) / container.name
        numbers = [int(log.stem) for log in folder.glob("*.log") if log.stem.isdigit()]
        return max(numbers) + 1 if numbers else 0

    def _run_post_start(
        self,
        setup: PodSetup,
        container: Container,
        container_id: str,
        config: cri.ContainerConfig,
        context: SyncContext,
    ) -> StartResult:
        hook = container.lifecycle.post_start if container.lifecycle else None
        if hook is None:
            return StartResult(container.name)
        target = HookTarget(container_id, container, setup.address)
        error = _run_in_thread(lambda: run_hook(self._runtime, hook, target), context)
        if error is not None:
            text = f"PostStartHook failed: {error}"
            termination = self._build_termination(setup, config, container_id)
            termination = replace(termination, message="FailedPostStartHook")
            self._killer.kill(termination, None, context)
            return self._record_failure(setup.pod, StartResult(container.name, HOOK_ERROR, text))
        return StartResult(container.name)

    def _build_termination(
        self, setup: PodSetup, config: cri.ContainerConfig, container_id: str
    ) -> ContainerTermination:
        status = self._runtime.container_status(container_id)
        listed = cri.RuntimeContainer(
            id=container_id,
            sandbox_id=setup.sandbox_id,
            name=config.name,
            attempt=config.attempt,
            image=config.image,
            state=status.state,
            created_at=status.created_at,
            labels=config.labels,
            annotations=config.annotations,
        )
        return ContainerTermination(listed, setup.pod, setup.address)

    def _record_failure(self, pod: Pod, result: StartResult) -> StartResult:
        if result.reason == HOOK_ERROR:
            event, text = "FailedPostStartHook", result.message
        else:
            event, text = "Failed", messages.build_error(result.message)
        self._recorder.record_pod_event(pod, "Warning", event, text, result.container)
        return result


def _find_target(container: Container, view: PodView) -> str:
    """Returns the id of the container whose processes an ephemeral one sees, "" for none.

    Raises ContainerConfigError if that container does not run.
    """
    name = name_target(container)
    if not name:
        return ""
    target = view.find(name)
    if target is None or target.state is not cri.RuntimeContainerState.RUNNING:
        raise errors.ContainerConfigError(f'unable to find target container "{name}"')
    return target.id


def _run_in_thread(
    hook: Callable[[], None], context: SyncContext
) -> errors.ContainerRuntimeError | None:
    """Runs a hook in a thread and waits for it. Returns why it failed, or None.

    Raises SyncCancelled if the sync is cancelled first. The hook then goes on in its thread.
    """
    failures: list[errors.ContainerRuntimeError] = []
    over = threading.Event()

    def work() -> None:
        try:
            hook()
        except errors.ContainerRuntimeError as error:
            failures.append(error)
        finally:
            over.set()

    start_thread("kcm-poststart", work)
    context.wait(over)
    return failures[0] if failures else None
