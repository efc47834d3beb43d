"""Delays the replacement of failed daemon pods, per node: 1 second, doubling up to 15 minutes.

The back-off is kept in the memory of the DaemonSet's key, so it outlives the process.

Source: failedPodsBackoff in pkg/controller/daemon/daemon_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.helpers.backoff import BackoffEntry, BackoffPolicy

POLICY = BackoffPolicy(initial=1.0, maximum=900.0)  # seconds


class FailedPodsBackoff:
    """The back-off of each node, by the node's name."""

    def __init__(self, memory: Mapping[str, str], now: datetime) -> None:
        """`memory` is what `to_memory` returned in an earlier sync."""
        self._now = now.timestamp()
        entries = {node: _parse_entry(text) for node, text in memory.items()}
        self._entries = {
            node: entry
            for node, entry in entries.items()
            if not POLICY.is_expired(entry, self._now)
        }

    def wait(self, node: str) -> float:
        """Returns the seconds until a failed pod of the node may be replaced, 0 if it may now."""
        entry = self._entries.get(node)
        return POLICY.remaining(entry, entry.last_update, self._now) if entry else 0.0

    def next(self, node: str) -> None:
        """Records that a failed pod of the node is replaced now, and doubles the node's delay."""
        self._entries[node] = POLICY.next(self._entries.get(node), self._now, self._now)

    def to_memory(self) -> dict[str, str]:
        """Returns each node's delay and last update as text, for the memory of the next sync."""
        return {node: f"{entry.delay} {entry.last_update}" for node, entry in self._entries.items()}


def _parse_entry(text: str) -> BackoffEntry:
    delay, _, last_update = text.partition(" ")
    return BackoffEntry(float(delay), float(last_update))
