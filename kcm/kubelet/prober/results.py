"""Keeps the verdicts of probes on containers, and notifies the sync loop of changes.

Source: pkg/kubelet/prober/results/results_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kcm.api.core_v1 import Pod


class ProbeVerdict(StrEnum):
    """The result of one kind of probe for a container, after success and failure thresholds."""

    UNKNOWN = "unknown"
    SUCCESS = "successful"
    FAILURE = "failed"


@dataclass(frozen=True)
class ProbeUpdate:
    """A change of a container's verdict. The id is the runtime's own."""

    container_id: str
    verdict: ProbeVerdict
    pod_uid: str


class ProbeResults:
    """The verdicts of one kind of probe, by container id. Thread-safe."""

    def __init__(self, on_change: Callable[[ProbeUpdate], object] = lambda _: None) -> None:
        """`on_change` is called with each change, outside of the lock. It must not block."""
        self._lock = threading.Lock()
        self._on_change = on_change
        self._verdicts: dict[str, ProbeVerdict] = {}

    def get(self, container_id: str) -> ProbeVerdict | None:
        """Returns the container's verdict, or None if there is none."""
        with self._lock:
            return self._verdicts.get(container_id)

    def passes(self, container_id: str) -> bool | None:
        """Returns whether the container passes, or None while that is unknown."""
        verdict = self.get(container_id)
        if verdict in (None, ProbeVerdict.UNKNOWN):
            return None
        return verdict is ProbeVerdict.SUCCESS

    def set(self, container_id: str, verdict: ProbeVerdict, pod: Pod) -> None:
        """Sets the container's verdict, and calls `on_change` if it is another one."""
        with self._lock:
            previous = self._verdicts.get(container_id)
            self._verdicts[container_id] = verdict
        if previous is not verdict:
            self._on_change(ProbeUpdate(container_id, verdict, pod.uid or ""))

    def remove(self, container_id: str) -> None:
        """Forgets the container."""
        with self._lock:
            self._verdicts.pop(container_id, None)
