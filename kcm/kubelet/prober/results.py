"""What probes found, by container id, and who is told when it changes.

Source: pkg/kubelet/prober/results/results_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kcm.api.core_v1 import Pod


class Result(StrEnum):
    """What is known of a container."""

    UNKNOWN = "unknown"
    SUCCESS = "successful"
    FAILURE = "failed"


@dataclass(frozen=True)
class Update:
    """A result that is another than before."""

    container_id: str
    result: Result
    pod_uid: str


class Results:
    """The results of one kind of probe; thread-safe.

    `updated` is called with each change, outside of the lock, and must not block: a
    channel's `offer`.
    """

    def __init__(self, updated: Callable[[Update], object] = lambda _: None) -> None:
        self._lock = threading.Lock()
        self._updated = updated
        self._found: dict[str, Result] = {}

    def get(self, container_id: str) -> Result | None:
        with self._lock:
            return self._found.get(container_id)

    def passes(self, container_id: str) -> bool | None:
        """True or False once that is known, else None."""
        found = self.get(container_id)
        return None if found in (None, Result.UNKNOWN) else found is Result.SUCCESS

    def set(self, container_id: str, result: Result, pod: Pod) -> None:
        with self._lock:
            before = self._found.get(container_id)
            self._found[container_id] = result
        if before is not result:
            self._updated(Update(container_id, result, pod.uid or ""))

    def remove(self, container_id: str) -> None:
        with self._lock:
            self._found.pop(container_id, None)
