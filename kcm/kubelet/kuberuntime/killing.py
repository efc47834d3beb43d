"""Kills containers: preStop hook, SIGTERM, grace period, SIGKILL.

Source: killContainer and executePreStopHook in pkg/kubelet/kuberuntime/kuberuntime_container.go,
and kuberuntime_termination_order.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from kcm import errors
from kcm.api.core_v1 import Container, Pod, Probe
from kcm.api.core_v1.handlers import LifecycleHandler
from kcm.clock import Clock
from kcm.helpers.pods import list_containers, sidecar_place
from kcm.kubelet import cri
from kcm.kubelet.kuberuntime import labels, messages
from kcm.kubelet.kuberuntime.hooks import HookTarget, run_hook
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import DEFAULT_GRACE, MINIMUM_GRACE, termination_grace_period
from kcm.loops import start_thread

log = structlog.get_logger("kcm.kubelet")


@dataclass(frozen=True)
class ContainerTermination:
    """A container to kill, with the pod's IP, and a message and reason for it.

    If the pod is unknown, grace period and preStop hook come from the container's annotations.
    """

    container: cri.RuntimeContainer
    pod: Pod | None = None
    address: str = ""
    message: str = ""
    reason: str = ""

    @property
    def spec(self) -> Container | None:
        """The container's spec, or None if it is unknown."""
        spec = self.pod.spec if self.pod else None
        containers = list_containers(spec) if spec else []
        return next(
            (container for container in containers if container.name == self.container.name), None
        )

    @property
    def sidecar_place(self) -> int | None:
        """The sidecar's position among the init containers, or None for other containers."""
        return sidecar_place(self.pod, self.container.name)

    @property
    def grace(self) -> int:
        """The grace period in seconds. A probe that failed (`reason`) may have one of its own."""
        spec = self.spec
        if self.pod is None or spec is None:
            annotated = labels.number(self.container.annotations, labels.POD_GRACE)
            return DEFAULT_GRACE if annotated is None else annotated
        probes: dict[str, Probe | None] = {
            "LivenessProbe": spec.liveness_probe,
            "StartupProbe": spec.startup_probe,
        }
        probe = probes.get(self.reason)
        own = probe.termination_grace_period_seconds if probe else None
        return termination_grace_period(self.pod) if own is None else own

    @property
    def pre_stop(self) -> LifecycleHandler | None:
        """The container's preStop hook, or None."""
        if self.spec is not None:
            return self.spec.lifecycle.pre_stop if self.spec.lifecycle else None
        annotation = self.container.annotations.get(labels.PRE_STOP)
        return LifecycleHandler.model_validate_json(annotation) if annotation else None


class ContainerKiller:
    """Kills containers within their grace periods. Thread-safe."""

    def __init__(self, runtime: cri.Runtime, recorder: KubeletEventRecorder, clock: Clock) -> None:
        self._runtime = runtime
        self._recorder = recorder
        self._clock = clock

    def kill_all(
        self, terminations: Sequence[ContainerTermination], grace: int | None, context: SyncContext
    ) -> None:
        """Kills containers in parallel, except sidecars, which follow one by one, last one first.

        `grace` overrides the grace periods, in seconds. Raises ContainerRuntimeError if one did not
        exit.
        """
        deadline = self._clock.monotonic() + max((e.grace for e in terminations), default=0)
        if grace is not None:
            deadline = self._clock.monotonic() + grace
        placed = [(termination.sidecar_place, termination) for termination in terminations]
        ordinary = [termination for place, termination in placed if place is None]
        _run_in_parallel([self._kill_task(termination, grace, context) for termination in ordinary])
        sidecars = [(place, termination) for place, termination in placed if place is not None]
        for _, termination in sorted(sidecars, key=lambda pair: pair[0], reverse=True):
            left = max(round(deadline - self._clock.monotonic()), 0)
            self.kill(termination, left, context)

    def _kill_task(
        self, termination: ContainerTermination, grace: int | None, context: SyncContext
    ) -> Callable[[], None]:
        return lambda: self.kill(termination, grace, context)

    def kill(
        self, termination: ContainerTermination, grace: int | None, context: SyncContext
    ) -> None:
        """Kills one container. `grace` overrides its grace period, in seconds.

        Raises ContainerRuntimeError.
        """
        container = termination.container
        seconds = float(termination.grace if grace is None else grace)
        message = termination.message or messages.build_stopping(container.name)
        self._recorder.record_pod_event(
            termination.pod, "Normal", "Killing", message, container.name
        )
        hook = termination.pre_stop
        if hook and seconds > 0:
            seconds -= self._run_pre_stop(termination, hook, seconds, context)
        seconds = max(seconds if context.grace is None else min(seconds, context.grace), 0)

        def shorten(new: int) -> None:
            try:
                self._runtime.stop_container(container.id, new)
            except errors.ContainerRuntimeError as error:
                log.warning("container was not killed", container=container.id, error=str(error))

        with context.on_shorter_grace(shorten):
            self._runtime.stop_container(container.id, max(seconds, MINIMUM_GRACE))

    def _run_pre_stop(
        self,
        termination: ContainerTermination,
        hook: LifecycleHandler,
        seconds: float,
        context: SyncContext,
    ) -> float:
        """Runs the hook for at most that many seconds; returns the seconds that it took.

        A failure is recorded as an Event. A shorter grace period ends the wait for the hook.
        """
        started = self._clock.monotonic()
        done = threading.Event()

        def work() -> None:
            try:
                target = HookTarget(termination.container.id, termination.spec, termination.address)
                run_hook(self._runtime, hook, target, seconds)
            except errors.ContainerRuntimeError as error:
                self._recorder.record_pod_event(
                    termination.pod,
                    "Warning",
                    "FailedPreStopHook",
                    f"PreStopHook failed: {error}",
                    termination.container.name,
                )
            finally:
                done.set()

        start_thread("kcm-prestop", work)
        with context.on_shorter_grace(lambda _: done.set()):
            self._clock.wait(done, seconds)
        return self._clock.monotonic() - started


def _run_in_parallel(tasks: Sequence[Callable[[], None]]) -> None:
    """Runs all tasks in parallel and waits for them, then raises the first failure."""
    failures: list[Exception] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except errors.ContainerRuntimeError as error:
            failures.append(error)

    threads = [start_thread("kcm-kill", partial(run, task)) for task in tasks[1:]]
    if tasks:
        run(tasks[0])
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
