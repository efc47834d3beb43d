"""Starting a container: its environment and mounts, the container, its postStart hook.

Source: startContainer in pkg/kubelet/kuberuntime/kuberuntime_container.go, Kubernetes 1.33.
Departure: with processes, an image is a word. Nothing is pulled, imagePullPolicy means nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kcm import errors
from kcm.api.core_v1 import Container, Pod
from kcm.kubelet import cri
from kcm.kubelet.environment.lookups import Lookups, Place
from kcm.kubelet.environment.store_lookups import StaticLookups
from kcm.kubelet.environment.variables import make_environment
from kcm.kubelet.kuberuntime import words
from kcm.kubelet.kuberuntime.configs import container_config, log_directory
from kcm.kubelet.kuberuntime.hooks import Target, run_hook
from kcm.kubelet.kuberuntime.images import ImageManager
from kcm.kubelet.kuberuntime.killing import Ending, Killer
from kcm.kubelet.kuberuntime.results import (
    CONFIG_ERROR,
    CREATE_ERROR,
    HOOK_ERROR,
    RUN_ERROR,
    StartResult,
)
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.recorder import Recorder
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import is_static_pod
from kcm.kubelet.volumes.volumes import PodVolumes, Volumes


@dataclass(frozen=True)
class Ground:
    """Where the containers of one pod start."""

    pod: Pod
    sandbox_id: str
    place: Place
    volumes: PodVolumes

    @property
    def address(self) -> str:
        return self.place.pod_ips[0] if self.place.pod_ips else ""


class Starter:
    """Starts containers; thread-safe."""

    def __init__(
        self,
        runtime: cri.Runtime,
        killer: Killer,
        recorder: Recorder,
        *,
        volumes: Volumes,
        lookups: Lookups,
        logs: Path,
        images: ImageManager | None = None,
    ) -> None:
        """Without `images`, an image is a word."""
        self._runtime = runtime
        self._killer = killer
        self._recorder = recorder
        self._volumes = volumes
        self._lookups = lookups
        self._logs = logs
        self._images = images

    def start(
        self, ground: Ground, container: Container, view: PodView, context: SyncContext
    ) -> StartResult:
        """Start a container once; what went wrong is in the result."""
        pod, name = ground.pod, container.name
        if self._images is not None and (missing := self._images.ensure(pod, container)):
            return missing
        restarts = self._restarts(pod, container, view)
        try:
            config = self._config(ground, container, restarts)
        except (errors.ContainerConfigError, errors.Temporary) as error:
            return self._failed(pod, StartResult(name, CONFIG_ERROR, str(error)))
        try:
            container_id = self._runtime.create_container(ground.sandbox_id, config)
        except errors.ContainerConfigError as error:
            return self._failed(pod, StartResult(name, CONFIG_ERROR, str(error)))
        except errors.ContainerRuntimeError as error:
            return self._failed(pod, StartResult(name, CREATE_ERROR, str(error)))
        self._recorder.of_pod(pod, "Normal", "Created", words.created(name), name)
        try:
            self._runtime.start_container(container_id)
        except errors.ContainerRuntimeError as error:
            return self._failed(pod, StartResult(name, RUN_ERROR, str(error)))
        self._recorder.of_pod(pod, "Normal", "Started", words.started(name), name)
        return self._post_start(ground, container, container_id, config, context)

    def _config(self, ground: Ground, container: Container, restarts: int) -> cri.ContainerConfig:
        pod, place = ground.pod, ground.place
        lookups = StaticLookups(self._lookups) if is_static_pod(pod) else self._lookups
        environment = make_environment(pod, container, lookups, place)
        mounts = self._volumes.mounts(pod, container, ground.volumes, environment)
        memory = place.allocatable.get("memory")
        return container_config(
            pod, container, restarts, environment, mounts,
            memory_capacity=memory.value() if memory else 0,
        )  # fmt: skip

    def _restarts(self, pod: Pod, container: Container, view: PodView) -> int:
        """How often it was started before; the logs know where containers were removed."""
        found = view.find(container.name)
        if found is not None:
            return found.restart_count + 1
        folder = log_directory(self._logs, pod) / container.name
        numbers = [int(log.stem) for log in folder.glob("*.log") if log.stem.isdigit()]
        return max(numbers) + 1 if numbers else 0

    def _post_start(
        self,
        ground: Ground,
        container: Container,
        container_id: str,
        config: cri.ContainerConfig,
        context: SyncContext,
    ) -> StartResult:
        hook = container.lifecycle.post_start if container.lifecycle else None
        if hook is None:
            return StartResult(container.name)
        target = Target(container_id, container, ground.address)
        error = _run_beside(lambda: run_hook(self._runtime, hook, target), context)
        if error is not None:
            text = f"PostStartHook failed: {error}"
            ended = self._ended(ground, config, container_id)
            ending = replace(ended, message="FailedPostStartHook")
            self._killer.kill(ending, None, context)
            return self._failed(ground.pod, StartResult(container.name, HOOK_ERROR, text))
        return StartResult(container.name)

    def _ended(self, ground: Ground, config: cri.ContainerConfig, container_id: str) -> Ending:
        status = self._runtime.container_status(container_id)
        listed = cri.Container(
            id=container_id,
            sandbox_id=ground.sandbox_id,
            name=config.name,
            attempt=config.attempt,
            image=config.image,
            state=status.state,
            created_at=status.created_at,
            labels=config.labels,
            annotations=config.annotations,
        )
        return Ending(listed, ground.pod, ground.address)

    def _failed(self, pod: Pod, result: StartResult) -> StartResult:
        if result.reason == HOOK_ERROR:
            event, text = "FailedPostStartHook", result.message
        else:
            event, text = "Failed", words.error(result.message)
        self._recorder.of_pod(pod, "Warning", event, text, result.container)
        return result


def _run_beside(
    hook: Callable[[], None], context: SyncContext
) -> errors.ContainerRuntimeError | None:
    """Run a hook to its end; returns why it failed.

    Raises SyncCancelled when the pod is to end first: the hook ends with its container.
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

    threading.Thread(target=work, daemon=True, name="kcm-poststart").start()
    context.wait(over)
    return failures[0] if failures else None
