"""The usage of simulated pods, and its reports by simulated nodes.

A shared profile is what all ready pods of one controller use together: it is divided evenly, and
its time counts from the start of the first pod.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from kcm.apimachinery.quantity import Quantity, ResourceList
from kcm.simulation.nodes import SimulatedNode, SimulatedNodes
from kcm.simulation.pods import SimulatedPods
from kcm.simulation.scripting.profiles import Profile
from kcm.simulation.scripting.usage import IDLE, find_profiles
from kcm.simulation.tracked import TrackedPod
from kcm.store.resource_metrics.usage import NodeReport, PodUsage, UsageBoard, total

OVERHEAD: ResourceList = {"cpu": Quantity("50m"), "memory": Quantity("256Mi")}  # of a node
_OUTLASTS = 3.5  # report intervals after which a report is void


@dataclass(slots=True)
class _Group:
    """The pods of one controller: since when there are any, and how many share the usage now."""

    since: float
    ready: int = 0


class Meter:
    """Measures and reports the usage of simulated pods.

    Not thread-safe. Times are seconds since 1970.
    """

    def __init__(
        self, board: UsageBoard, nodes: SimulatedNodes, pods: SimulatedPods, every: float
    ) -> None:
        self._board = board
        self._nodes = nodes
        self._pods = pods
        self._every = every
        self._groups: dict[str, _Group] = {}

    def report(self, now: float) -> None:
        """Writes the usage reports of all nodes that are not silent. Raises Temporary."""
        self._gather(now)
        nodes = self._nodes.by_name.values()
        reports = [self._of_node(n, now) for n in nodes if n.object and not n.silent(now)]
        self._board.report(reports, self._every * _OUTLASTS)

    def _gather(self, now: float) -> None:
        """Counts the pods that share profiles.

        A group keeps its start time as long as it has pods.
        """
        starts: dict[str, list[float]] = defaultdict(list)
        ready: dict[str, int] = defaultdict(int)
        for tracked in self._pods.tracked.values():
            if tracked.run is not None and not tracked.run.over:
                starts[tracked.owner].append(tracked.run.seen)
                ready[tracked.owner] += tracked.run.is_ready(now)
        before = self._groups
        self._groups = {
            owner: _Group(before[owner].since if owner in before else min(moments), ready[owner])
            for owner, moments in starts.items()
        }

    def _of_node(self, node: SimulatedNode, now: float) -> NodeReport:
        pods = {}
        for key in node.pods:
            tracked = self._pods.tracked.get(key)
            if tracked is not None and (usage := self._of_pod(tracked, now)) is not None:
                pods[key] = usage
        every = (used for pod in pods.values() for used in pod.containers.values())
        return NodeReport(node.name, now, self._every, total([OVERHEAD, *every]), pods)

    def _of_pod(self, tracked: TrackedPod, now: float) -> PodUsage | None:
        """Returns the pod's usage, or None if none of its containers runs."""
        run = tracked.run
        if run is None or run.over:
            return None
        containers = {
            attempt.name: self._of_container(tracked, attempt.name, now)
            for attempt in run.list_running(now)
        }
        if not containers:
            return None
        metrics = {
            name: self._amount(tracked, profile, now)
            for name, profile in tracked.script.main.metrics.items()
        }
        return PodUsage(containers, metrics)

    def _of_container(self, tracked: TrackedPod, name: str, now: float) -> ResourceList:
        assert tracked.run is not None
        script = tracked.script.of(name, ordinary=name not in tracked.run.inits)
        amounts = dict(IDLE)
        for resource, profile in find_profiles(script).items():
            amounts[resource] = self._amount(tracked, profile, now)
        return amounts

    def _amount(self, tracked: TrackedPod, profile: Profile, now: float) -> Quantity:
        assert tracked.run is not None
        if not profile.shared:
            return profile.at(now - tracked.run.seen)
        group = self._groups[tracked.owner]
        if not tracked.run.is_ready(now):
            return Quantity(0)  # a pod that is not ready gets no requests
        return profile.at(now - group.since, group.ready)
