"""Reports usage to the metrics API, for `kubectl top` and autoscalers.

Source: what metrics-server 0.7 keeps of a kubelet's /metrics/resource.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import structlog

from kcm import errors
from kcm.apimachinery.quantity import ResourceList
from kcm.clock import Clock
from kcm.kubelet.stats.provider import PodStats, StatsProvider, StatsSummary
from kcm.store.resource_metrics.usage import NodeReport, PodUsage, build_amounts

log = structlog.get_logger("kcm.kubelet")

INTERVAL = 10.0  # seconds between reports; metrics-server requests them every 15
FIRST_INTERVAL = 1.0  # seconds between the first two measurements, which rates need
EXPIRES_AFTER = 45.0  # seconds after which a report is void

WriteUsage = Callable[[Sequence[NodeReport], float], None]


def build_node_report(node_name: str, summary: StatsSummary) -> NodeReport | None:
    """Returns the report of a summary, or None if there are no CPU rates yet."""
    if summary.cores is None:
        return None
    return NodeReport(
        node=node_name,
        moment=summary.machine.at.timestamp(),
        window=summary.window,
        usage=build_amounts(summary.cores, summary.machine.working_set),
        pods={
            f"{pod.namespace}/{pod.name}": PodUsage(containers)
            for pod in summary.pods
            if (containers := _containers(pod))
        },
    )


def _containers(pod: PodStats) -> dict[str, ResourceList]:
    """Returns each container's usage by name.

    Returns {} if a container was measured only once, since the pod would seem idle.
    """
    if any(container.cores is None for container in pod.containers):
        return {}
    return {
        container.name: build_amounts(container.cores or 0.0, container.memory)
        for container in pod.containers
    }


class UsageReporter:
    """Reports the usage of the node and its pods every INTERVAL seconds."""

    def __init__(
        self, node_name: str, stats: StatsProvider, write: WriteUsage, clock: Clock
    ) -> None:
        self._node_name = node_name
        self._stats = stats
        self._write = write
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        """Reports until `stop` is set."""
        wait = FIRST_INTERVAL
        self.report()
        while not self._clock.wait(stop, wait):
            self.report()
            wait = INTERVAL

    def report(self) -> None:
        """Measures and reports once. A failure is logged, and the next report tries again."""
        try:
            report = build_node_report(
                self._node_name, self._stats.summary(max_age=FIRST_INTERVAL / 2)
            )
            if report is not None:
                self._write([report], EXPIRES_AFTER)
        except errors.KcmError as error:
            log.info("The node's usage was not reported", error=error.message)
