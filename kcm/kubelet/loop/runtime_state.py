"""Whether the runtime is there to be worked with.

Source: pkg/kubelet/runtime.go and updateRuntimeUp in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.cri import Runtime, RuntimeStatus

log = structlog.get_logger("kcm.kubelet")

UPDATE_EVERY = 5.0  # seconds
THRESHOLD = 30.0  # seconds without a good answer until the runtime counts as down


class RuntimeState:
    """Thread-safe."""

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self._runtime = runtime
        self._clock = clock
        self._checks: dict[str, Callable[[], str]] = {}
        self._good_at: float | None = None
        self._fault = ""
        self.status = RuntimeStatus(False, "the runtime has not been asked yet")

    def add_check(self, name: str, check: Callable[[], str]) -> None:
        """Another thing to be well: it answers "" or what is wrong."""
        self._checks[name] = check

    def update(self) -> None:
        """Ask the runtime."""
        try:
            self.status = self._runtime.status()
        except errors.KcmError as error:
            self.status = RuntimeStatus(False, str(error))
        self._fault = "" if self.status.ready else self.status.message
        if self.status.ready:
            self._good_at = self._clock.monotonic()

    def run(self, stop: threading.Event) -> None:
        """Ask every 5 s until `stop`."""
        while not stop.is_set():
            self.update()
            self._clock.wait(stop, UPDATE_EVERY)

    def errors(self) -> list[str]:
        """What is wrong, [] for nothing."""
        found = []
        if self._good_at is None:
            found.append("container runtime status check may not have completed yet")
        elif self._clock.monotonic() - self._good_at > THRESHOLD:
            found.append("container runtime is down")
        if self._fault:
            found.append(f"container runtime is not ready: {self._fault}")
        for name, check in self._checks.items():
            if words := check():
                found.append(f"{name} is not healthy: {words}")
        return found
