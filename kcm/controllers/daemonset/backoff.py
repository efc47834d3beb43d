"""How long a node whose pod failed waits for the next pod: 1 second, doubling to 15 minutes.

The back-off is kept from sync to sync with the key, so it outlives the process. Source: client-go
util/flowcontrol/backoff.go as pkg/controller/daemon/daemon_controller.go uses it, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

FIRST, LONGEST = 1.0, 900.0  # seconds


class Backoff:
    """The delays by node, as text that can be remembered."""

    def __init__(self, memory: Mapping[str, str], now: datetime) -> None:
        self._now = now.timestamp()
        self._entries = {node: entry for node, entry in _parsed(memory) if not self._over(entry)}

    def _over(self, entry: tuple[float, float]) -> bool:
        return self._now - entry[1] > 2 * LONGEST

    def wait(self, node: str) -> float:
        """Returns the seconds until a failed pod on the node may be replaced."""
        delay, since = self._entries.get(node, (0.0, 0.0))
        return max(0.0, since + delay - self._now)

    def next(self, node: str) -> None:
        """Notes that a pod is replaced now: the next one waits longer."""
        delay = self._entries.get(node, (0.0, 0.0))[0]
        self._entries[node] = (min(LONGEST, delay * 2) or FIRST, self._now)

    def memory(self) -> dict[str, str]:
        return {node: f"{delay} {since}" for node, (delay, since) in self._entries.items()}


def _parsed(memory: Mapping[str, str]) -> list[tuple[str, tuple[float, float]]]:
    found = []
    for node, text in memory.items():
        delay, _, since = text.partition(" ")
        found.append((node, (float(delay), float(since))))
    return found
