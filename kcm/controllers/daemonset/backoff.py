"""How long a node waits for a new pod after one has failed there: 1 second up to 15 minutes.

Source: failedPodsBackoff in pkg/controller/daemon/daemon_controller.go, Kubernetes 1.33. It is
remembered with the key from sync to sync, so that it outlives the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.helpers.backoff import BackoffEntry, BackoffPolicy

POLICY = BackoffPolicy(initial=1.0, maximum=900.0)  # seconds


class FailedPodsBackoff:
    """The back-off of each node, by its name."""

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
        """Returns the seconds until a failed pod there may be replaced; 0 for now."""
        entry = self._entries.get(node)
        return POLICY.remaining(entry, entry.last_update, self._now) if entry else 0.0

    def next(self, node: str) -> None:
        """Records that a failed pod is replaced now; the next one waits longer."""
        self._entries[node] = POLICY.next(self._entries.get(node), self._now, self._now)

    def to_memory(self) -> dict[str, str]:
        """Returns the back-off as text, for the next sync."""
        return {node: f"{entry.delay} {entry.last_update}" for node, entry in self._entries.items()}


def _parse_entry(text: str) -> BackoffEntry:
    delay, _, last_update = text.partition(" ")
    return BackoffEntry(float(delay), float(last_update))
