"""What pods and node use, put where the metrics API finds it (`kubectl top`, autoscalers).

Source: what metrics-server 0.7 keeps of a kubelet's /metrics/resource.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import structlog

from kcm import errors
from kcm.apimachinery.quantity import Quantity, ResourceList
from kcm.clock import Clock
from kcm.kubelet.stats.provider import PodUse, StatsProvider, Summary
from kcm.store.resource_metrics.usage import NodeReport, PodUsage

log = structlog.get_logger("kcm.kubelet")

EVERY = 10.0  # seconds; metrics-server asks every 15
FIRST = 1.0  # seconds from the first look to the second, with which there are figures
LASTS = 45.0  # seconds until a silent node has no figures

Write = Callable[[Sequence[NodeReport], float], None]


def report_of(node: str, found: Summary) -> NodeReport | None:
    """What there is to report; None before the second look, without a rate of CPU: pure."""
    if found.cores is None:
        return None
    return NodeReport(
        node=node,
        moment=found.machine.at.timestamp(),
        window=found.window,
        usage=_amounts(found.cores, found.machine.working_set),
        pods={
            f"{pod.namespace}/{pod.name}": PodUsage(containers)
            for pod in found.pods
            if (containers := _containers(pod))
        },
    )


def _containers(pod: PodUse) -> dict[str, ResourceList]:
    """Of a pod with a container that was only looked at once, nothing: it would seem idle."""
    if any(one.cores is None for one in pod.containers):
        return {}
    return {one.name: _amounts(one.cores or 0.0, one.memory) for one in pod.containers}


def _amounts(cores: float, memory: int) -> ResourceList:
    return {
        "cpu": Quantity.of_nanos(round(cores * 10**9)),
        "memory": Quantity(f"{memory // 1024}Ki"),
    }


class UsageReporter:
    """Reports until told to stop."""

    def __init__(self, node: str, stats: StatsProvider, write: Write, clock: Clock) -> None:
        self._node = node
        self._stats = stats
        self._write = write
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        wait = FIRST
        self.report_once()
        while not self._clock.wait(stop, wait):
            self.report_once()
            wait = EVERY

    def report_once(self) -> None:
        """Look, and report. What fails is tried again the next time."""
        try:
            found = report_of(self._node, self._stats.summary(fresh=FIRST / 2))
            if found is not None:
                self._write([found], LASTS)
        except errors.KcmError as error:
            log.info("The node's usage was not reported", error=error.message)
