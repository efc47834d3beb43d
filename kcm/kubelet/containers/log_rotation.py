"""Rotates the logs of containers whose runtime leaves that to the kubelet.

A log that has grown too large is renamed to `<attempt>.log.<time>`, and the runtime opens a new
one. Guarantees: no line is lost. If the runtime opens no new file, the old one keeps its name.

Source: pkg/kubelet/logs/container_log_manager.go, Kubernetes 1.36. Departure: rotated files are not
compressed, so that they are read as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.cri import Runtime, RuntimeContainerState

log = structlog.get_logger("kcm.kubelet")


@dataclass(frozen=True)
class LogLimits:
    """When a log is rotated, and how many files are kept.

    `size` is in bytes. `every` are the seconds between two looks at all logs.
    """

    size: int
    files: int
    every: float = 10.0


class LogRotator:
    """Looks at the logs of all running containers, again and again."""

    def __init__(
        self, runtime: Runtime, reopen: Callable[[str], None], limits: LogLimits, clock: Clock
    ) -> None:
        """`reopen` makes the runtime open a container's log anew."""
        self._runtime = runtime
        self._reopen = reopen
        self._limits = limits
        self._clock = clock
        self._paths: dict[str, Path] = {}

    def run(self, stop: threading.Event) -> None:
        """Rotates until `stop` is set."""
        while not self._clock.wait(stop, self._limits.every):
            try:
                self.rotate_all()
            except errors.ContainerRuntimeError as error:
                log.warning("Failed to rotate container logs", error=str(error))

    def rotate_all(self) -> None:
        """Rotates each log that is too large. Raises ContainerRuntimeError.

        A log that cannot be rotated is tried again by the next call, and holds up no other.
        """
        running = [
            container.id
            for container in self._runtime.list_containers()
            if container.state is RuntimeContainerState.RUNNING
        ]
        self._paths = {id_: path for id_ in running if (path := self._find_path(id_)) is not None}
        for container_id, path in self._paths.items():
            try:
                if path.stat().st_size >= self._limits.size:
                    self._rotate(container_id, path)
            except FileNotFoundError:
                continue  # the container has gone, or has written nothing yet
            except (OSError, errors.ContainerRuntimeError) as error:
                log.warning("Failed to rotate log", container=container_id, error=str(error))

    def _find_path(self, container_id: str) -> Path | None:
        if container_id in self._paths:
            return self._paths[container_id]
        try:
            path = self._runtime.container_status(container_id).log_path
        except errors.ContainerNotFound:
            return None
        return Path(path) if path else None

    def _rotate(self, container_id: str, path: Path) -> None:
        """Rotates one log. Raises OSError and ContainerRuntimeError."""
        rotated = path.with_name(f"{path.name}.{self._clock.now():%Y%m%d-%H%M%S}")
        if rotated.exists():
            return  # the next call has another time
        for old in list_rotated(path)[: -max(self._limits.files - 2, 0) or None]:
            old.unlink(missing_ok=True)
        path.rename(rotated)
        try:
            self._reopen(container_id)
        except errors.ContainerRuntimeError:
            if not path.exists():
                rotated.rename(path)
            raise


def list_rotated(path: Path) -> list[Path]:
    """Returns the rotated files of a log, the oldest first."""
    return sorted(path.parent.glob(f"{path.name}.2*"))
