"""The metrics of priority and fairness, under upstream's names.

Source: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from kcm.apiserver.flowcontrol.demand import Demand
from kcm.apiserver.flowcontrol.schemas import Flow
from kcm.apiserver.flowcontrol.shares import SeatLimits

_PREFIX = "apiserver_flowcontrol_"
_LEVEL, _NAMES = ("priority_level",), ("priority_level", "flow_schema")
_BUCKETS = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)


class FlowMetrics:
    """Counts requests by priority level and FlowSchema."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauges = {
            "current_executing_requests": Tally[tuple[str, str]](),
            "current_executing_seats": Tally[tuple[str, str]](),
            "current_inqueue_requests": Tally[tuple[str, str]](),
        }
        self._executing, self._seats, self._queued = self._gauges.values()
        self._dispatched = Tally[tuple[str, str]]()
        self._refused = Counter(
            f"{_PREFIX}rejected_requests", "Requests that were refused, by reason.",
            (*_NAMES, "reason"), registry=registry,
        )  # fmt: skip
        self._wait = Histogram(
            f"{_PREFIX}request_wait_duration_seconds",
            "Seconds that requests waited for seats, of those that had to wait.",
            (*_NAMES, "execute"), buckets=_BUCKETS, registry=registry,
        )  # fmt: skip
        registry.register(self)

    def start(self, flow: Flow, seats: int, waited: float) -> None:
        """Counts a request as executing, after it waited for so many seconds."""
        names = (flow.level, flow.schema)
        if waited:
            self._wait.labels(*names, "true").observe(waited)
        self._dispatched[names] += 1
        self._executing[names] += 1
        self._seats[names] += seats

    def finish(self, flow: Flow, seats: int) -> None:
        """Counts a request as executing no longer."""
        names = (flow.level, flow.schema)
        self._executing[names] -= 1
        self._seats[names] -= seats

    def enqueue(self, flow: Flow, by: int) -> None:
        """Adds to the requests that wait in queues."""
        self._queued[(flow.level, flow.schema)] += by

    def refuse(self, flow: Flow, reason: str, waited: float) -> None:
        """Counts a request as refused, after it waited for so many seconds."""
        self._refused.labels(flow.level, flow.schema, reason).inc()
        self._wait.labels(flow.level, flow.schema, "false").observe(waited)

    def collect(self) -> Iterator[Metric]:
        """Yields what each request changes, for which a metric of its own is too slow.

        It runs in a thread beside the event loop, which goes on counting: hence the copies.
        """
        total = CounterMetricFamily(
            f"{_PREFIX}dispatched_requests", "Requests that got seats.", labels=_NAMES
        )
        for names, count in list(self._dispatched.items()):
            total.add_metric(names, count)
        yield total
        for name, tally in self._gauges.items():
            family = GaugeMetricFamily(_PREFIX + name, name.replace("_", " "), labels=_NAMES)
            for names, count in list(tally.items()):
                family.add_metric(names, count)
            yield family


class LevelFigures(Protocol):
    """What a priority level shows of itself."""

    @property
    def limits(self) -> SeatLimits: ...

    @property
    def current(self) -> int: ...

    @property
    def demand(self) -> Demand: ...


_FIGURES: Mapping[str, tuple[str, Callable[[LevelFigures], float]]] = {
    "nominal_limit_seats": ("Seats by the level's share.", lambda one: one.limits.nominal),
    "lower_limit_seats": ("Seats that are never lent.", lambda one: one.limits.lower),
    "upper_limit_seats": ("Seats with all that may be borrowed.", lambda one: one.limits.upper),
    "current_limit_seats": ("Seats for now.", lambda one: one.current),
    "demand_seats_high_watermark": (
        "The most seats that could be used in the last period of 10 s.",
        lambda one: one.demand.high,
    ),
    "demand_seats_average": (
        "The mean of the seats that could be used in the last period.",
        lambda one: one.demand.average,
    ),
    "demand_seats_stdev": (
        "The standard deviation of the seats that could be used in the last period.",
        lambda one: one.demand.deviation,
    ),
    "demand_seats_smoothed": (
        "The seats that could be used, smoothed.", lambda one: one.demand.smoothed,
    ),
}  # fmt: skip


class LevelMetrics:
    """Collects the figures of all priority levels whenever metrics are requested."""

    def __init__(
        self,
        levels: Mapping[str, LevelFigures],
        turns: Callable[[], Mapping[str, int]],
        registry: CollectorRegistry,
    ) -> None:
        """`turns` returns the number of requests that wait for the event loop, by level."""
        self._levels, self._turns = levels, turns
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        for name, (text, figure) in _FIGURES.items():
            family = GaugeMetricFamily(_PREFIX + name, text, labels=_LEVEL)
            for level, figures in list(self._levels.items()):
                family.add_metric((level,), figure(figures))
            yield family
        waiting = GaugeMetricFamily(
            "kcm_apiserver_turns_waiting", "Requests that wait for the event loop.", labels=_LEVEL
        )
        for level, count in self._turns().items():
            waiting.add_metric((level,), count)
        yield waiting
