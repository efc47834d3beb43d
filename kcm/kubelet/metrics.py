"""The kubelet's own metrics, under upstream's names, in Prometheus' text format.

Source: pkg/kubelet/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_POWERS_OF_TWO = (1.0, 2.0, 4.0, 8.0, 16.0)

WORKER = "kubelet_pod_worker_duration_seconds"
CONTAINERS = "kubelet_containers_per_pod_count"
RELIST = "kubelet_pleg_relist_duration_seconds"

_HELP = {
    WORKER: ("Duration in seconds to sync a single pod, by operation type.", _SECONDS),
    CONTAINERS: ("The number of containers per pod.", _POWERS_OF_TWO),
    RELIST: ("Duration in seconds for relisting pods in PLEG.", _SECONDS),
}


class _Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, label: str) -> Iterator[str]:
        below = 0
        comma = f"{label}," if label else ""
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            below += count
            text = bound if isinstance(bound, str) else f"{bound:g}"
            yield f'{name}_bucket{{{comma}le="{text}"}} {below}'
        braces = f"{{{label}}}" if label else ""
        yield f"{name}_sum{braces} {self.sum:g}"
        yield f"{name}_count{braces} {below}"


class Metrics:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], _Histogram] = {}

    def pod_worker(self, operation: str, seconds: float) -> None:
        self._observe(WORKER, f'operation_type="{operation}"', seconds)

    def containers(self, count: int) -> None:
        """A new pod has so many containers."""
        self._observe(CONTAINERS, "", count)

    def relist(self, seconds: float) -> None:
        self._observe(RELIST, "", seconds)

    def _observe(self, name: str, label: str, value: float) -> None:
        with self._lock:
            key = (name, label)
            if key not in self._found:
                self._found[key] = _Histogram(_HELP[name][1])
            self._found[key].observe(value)

    def text(self) -> str:
        """All of it."""
        lines: list[str] = []
        with self._lock:
            for name, (words, _) in _HELP.items():
                lines += [f"# HELP {name} {words}", f"# TYPE {name} histogram"]
                for (found, label), histogram in sorted(self._found.items()):
                    if found == name:
                        lines += histogram.lines(name, label)
        return "\n".join(lines) + "\n"
