"""PodConfig: several sources, one stream of changes.

Source: PodConfig in pkg/kubelet/config/config.go and sources.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from kcm.clock import Clock
from kcm.kubelet.channels import Channel
from kcm.kubelet.config.merging import PodStorage
from kcm.kubelet.types import Operation, PodUpdate

Say = Callable[[PodUpdate], None]


class PodConfig:
    """Merges what sources say and puts what changed into a channel; thread-safe."""

    def __init__(self, channel: Channel, clock: Clock) -> None:
        self._channel = channel
        self._clock = clock
        self._lock = threading.Lock()
        self._storage = PodStorage()
        self.sources: set[str] = set()

    def source(self, name: str) -> Say:
        """Where a source says what pods it has; to be asked for before the start."""
        self.sources.add(name)
        return self._say

    def _say(self, update: PodUpdate) -> None:
        with self._lock:
            for changed in self._storage.merge(update, self._clock.now()):
                self._channel.offer(changed)

    def restore(self, update: PodUpdate) -> None:
        """Pods of a checkpoint. Raises ValueError for another operation than RESTORE."""
        if update.op is not Operation.RESTORE:
            raise ValueError(f"not a restoring update: {update.op}")
        self._say(update)

    def seen_all_sources(self, seen: set[str]) -> bool:
        """Whether each source is among those that were seen, and has told all its pods."""
        with self._lock:
            return self.sources <= seen and self.sources <= self._storage.seen


class SourcesReady:
    """Whether every source has told its pods, so that what is missing is really gone."""

    def __init__(self, config: PodConfig) -> None:
        self._config = config
        self._seen: set[str] = set()

    def add_source(self, source: str) -> None:
        self._seen.add(source)

    def all_ready(self) -> bool:
        return self._config.seen_all_sources(self._seen)
