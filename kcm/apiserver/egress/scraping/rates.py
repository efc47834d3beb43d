"""Computes the usage of a node and its pods from two scrapes of its kubelet.

Source: pkg/storage/node.go, pod.go and types.go of metrics-server 0.9. Departure: a pod is not
reported if a counter of one of its containers went back, since what is left would seem to be all
that it uses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kcm.apimachinery.quantity import ResourceList
from kcm.apiserver.egress.scraping.page import NODE, Place, Point
from kcm.store.resource_metrics.usage import NodeReport, PodUsage, build_amounts

RESOLUTION = 15.0  # seconds between two scrapes, as metrics-server's --metric-resolution
# Seconds for which a container must have run to be measured from its start, by its first scrape.
FRESH = 10.0


@dataclass(frozen=True)
class Rate:
    """The usage in the `window` seconds before `moment` (seconds since 1970)."""

    moment: float
    window: float
    usage: ResourceList


class NodeHistory:
    """The last two points of everything on one node."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._last: Mapping[Place, Point] = {}
        self._previous: Mapping[Place, Point] = {}

    def take(self, points: Mapping[Place, Point]) -> NodeReport | None:
        """Returns the report that follows from a scrape, None if it takes another one."""
        self._previous = {
            place: chosen
            for place, point in points.items()
            if (chosen := choose_previous(point, self._last.get(place), self._previous.get(place)))
        }
        self._last = points
        pods: dict[str, dict[str, Rate | None]] = defaultdict(dict)
        for (key, container), point in points.items():
            pods[key][container] = compute_rate(point, self._previous.get((key, container)))
        node = pods.pop(NODE[0], {}).get(NODE[1])
        usages = {key: usage for key, rates in pods.items() if (usage := _build_usage(rates))}
        if node is None and not usages:
            return None
        if node is None:
            moment, window = next(iter(usages.values())).measured or (0.0, 0.0)
            node = Rate(moment, window, {})
        return NodeReport(self._node, node.moment, node.window, node.usage, usages, scraped=True)


def choose_previous(new: Point, last: Point | None, previous: Point | None) -> Point | None:
    """Returns the point since which `new` is measured, None if there is none.

    `last` is the point of the scrape before, and `previous` the one since which that was measured.
    """
    if FRESH <= new.at - new.started < RESOLUTION:
        return replace(new, at=new.started, cpu=0.0)
    if last is None or new.started >= last.at:
        return None
    if new.at > last.at:
        return last
    # The kubelet has not measured anew.
    return previous if previous is not None and previous.at < new.at else None


def compute_rate(last: Point, previous: Point | None) -> Rate | None:
    """Returns the usage between two points, None if the counter did not go on from one to the
    other.
    """
    if previous is None or last.cpu < previous.cpu or last.started < previous.started:
        return None
    window = last.at - previous.at
    cores = (last.cpu - previous.cpu) / window
    return Rate(last.at, window, build_amounts(cores, int(last.memory)))


def _build_usage(rates: Mapping[str, Rate | None]) -> PodUsage | None:
    """Returns the usage of a pod, None unless all of its containers have rates."""
    measured = {name: rate for name, rate in rates.items() if rate is not None}
    if len(measured) < len(rates):
        return None
    first = min(measured.values(), key=lambda rate: rate.moment)
    containers = {name: rate.usage for name, rate in measured.items()}
    return PodUsage(containers, measured=(first.moment, first.window))
