"""PodConfig: merges several sources of pods into one stream of changes.

Source: PodConfig in pkg/kubelet/config/config.go and sources.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from kcm.clock import Clock
from kcm.kubelet.channels import Channel
from kcm.kubelet.config.merging import PodStorage
from kcm.kubelet.types import PodUpdate

SendUpdate = Callable[[PodUpdate], None]
"""Receives an update from a source."""


class PodConfig:
    """Merges the updates of sources and puts what has changed into a channel. Thread-safe."""

    def __init__(self, channel: Channel, clock: Clock, sources: Collection[str]) -> None:
        """`sources` are the names of all enabled sources."""
        self._channel = channel
        self._clock = clock
        self._sources = frozenset(sources)
        self._lock = threading.Lock()
        self._storage = PodStorage()

    def update(self, update: PodUpdate) -> None:
        """Merges an update of a source, and puts the changes into the channel."""
        with self._lock:
            for change in self._storage.merge(update, self._clock.now()):
                self._channel.offer(change)

    def has_seen_all_sources(self, seen: Collection[str]) -> bool:
        """Reports whether every source is in `seen` and has sent all of its pods once."""
        with self._lock:
            return self._sources <= frozenset(seen) and self._sources <= self._storage.complete


class SourcesReady:
    """Reports whether all sources have sent their pods. Until then, none must be removed."""

    def __init__(self, config: PodConfig) -> None:
        self._config = config
        self._seen: set[str] = set()

    def add_source(self, source: str) -> None:
        """Records that an update of the source has reached the sync loop."""
        self._seen.add(source)

    def all_ready(self) -> bool:
        """Reports whether the sync loop has seen every source's pods."""
        return self._config.has_seen_all_sources(self._seen)
