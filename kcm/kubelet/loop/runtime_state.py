"""The health of the container runtime, and of PLEG, which watches it.

Source: pkg/kubelet/runtime.go and updateRuntimeUp in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.cri import Runtime, RuntimeStatus

log = structlog.get_logger("kcm.kubelet")

UPDATE_INTERVAL = 5.0  # seconds
UNHEALTHY_THRESHOLD = 30.0  # seconds without being ready until the runtime counts as down


class RuntimeState:
    """The runtime's health. Thread-safe."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        *,
        health_checks: Mapping[str, Callable[[], str]] | None = None,
    ) -> None:
        """`health_checks` are further checks by name. Each returns "", or what is wrong."""
        self._runtime = runtime
        self._clock = clock
        self._health_checks = dict(health_checks or {})
        self._last_ready: float | None = None
        self._problem = ""

    def update(self) -> None:
        """Requests the runtime's status and remembers it."""
        try:
            status = self._runtime.status()
        except errors.KcmError as error:
            status = RuntimeStatus(False, str(error))
        self._problem = "" if status.ready else status.message
        if status.ready:
            self._last_ready = self._clock.monotonic()

    def run(self, stop: threading.Event) -> None:
        """Updates the status every UPDATE_INTERVAL seconds until `stop` is set."""
        while not stop.is_set():
            self.update()
            self._clock.wait(stop, UPDATE_INTERVAL)

    def errors(self) -> list[str]:
        """Returns what is wrong with the runtime, as messages; [] if it is healthy."""
        problems = []
        if self._last_ready is None:
            problems.append("container runtime status check may not have completed yet")
        elif self._clock.monotonic() - self._last_ready > UNHEALTHY_THRESHOLD:
            problems.append("container runtime is down")
        if self._problem:
            problems.append(f"container runtime is not ready: {self._problem}")
        for name, check in self._health_checks.items():
            if problem := check():
                problems.append(f"{name} is not healthy: {problem}")
        return problems
