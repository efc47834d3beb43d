"""Finding a node for one pod after the other.

Guarantees: each decision counts with all earlier ones of the pass, and with the places that
are kept for nominated pods of the same or a higher priority.

Source: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod,
numFeasibleNodesToFind, selectHost), Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kcm.scheduler.nodeinfo import NodeInfo
from kcm.scheduler.options import SchedulerOptions
from kcm.scheduler.podinfo import PodInfo
from kcm.scheduler.snapshot import Snapshot
from kcm.scheduler.status import NODE_ABSENT, Status, summary
from kcm.scheduler.template import UNKNOWN, Template, Templates

MIN_FEASIBLE = 100  # nodes that are looked for whatever the percentage
MIN_PERCENTAGE = 5


@dataclass(frozen=True)
class NoFit:
    """Why no node will do; statuses by the index of the node."""

    statuses: Sequence[Status]

    @property
    def plugins(self) -> tuple[str, ...]:
        """Who refused, in the order of their names."""
        return tuple(sorted({status.plugin for status in self.statuses if status.plugin}))

    @property
    def text(self) -> str:
        """`0/5 nodes are available: ...`"""
        return summary(len(self.statuses), self.statuses)


def feasible_wanted(nodes: int, percentage: int) -> int:
    """How many feasible nodes end the search; `percentage` 0 stands for the adaptive one."""
    if nodes < MIN_FEASIBLE:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, MIN_PERCENTAGE)
    return max(nodes * percentage // 100, MIN_FEASIBLE)


class Placer:
    """Decides where pods go. `rng` breaks ties."""

    def __init__(
        self,
        snapshot: Snapshot,
        templates: Templates,
        options: SchedulerOptions,
        rng: random.Random,
    ) -> None:
        self.snapshot = snapshot
        self.templates = templates
        self._options = options
        self._rng = rng
        self._next = 0  # where the next search begins, so that all nodes have their turn

    def place(self, info: PodInfo) -> NodeInfo | NoFit:
        """The node for the pod, or why there is none. Changes nothing."""
        template = self.templates.of(info)
        if info.nominated:
            node = self.snapshot.by_name.get(info.nominated)
            if node is not None and node.node is not None and self.fits(template, info, node):
                return node
        moment = (self.snapshot.log_end, self.snapshot.nominations)
        if template.failed is not None and template.failed[0] == moment and not info.nominated:
            found: NoFit = template.failed[1]
            return found
        indexes, refusals = self._search(template, info)
        if not indexes:
            no_fit = NoFit([refusals[n] for n in range(len(self.snapshot.nodes))])
            template.failed = (moment, no_fit)
            return no_fit
        return self.snapshot.nodes[self._best(template, indexes)]

    def fits(self, template: Template, info: PodInfo, node: NodeInfo) -> bool:
        """Whether the pod can go to the node, beside those nominated to it and without them."""
        return self.check(template, info, node) is None

    def check(self, template: Template, info: PodInfo, node: NodeInfo) -> Status | None:
        """As `fits`, with the reason against it."""
        rivals = rivals_on(self.snapshot, info, node.name)
        if rivals:
            with trying(template, node, added=rivals):
                refused = template.try_out(node)
            if refused is not None:
                return refused
        return template.try_out(node)

    def _search(self, template: Template, info: PodInfo) -> tuple[list[int], Mapping[int, Status]]:
        """Feasible nodes, as many as are wanted, and why the others will not do."""
        size = len(self.snapshot.nodes)
        wanted = feasible_wanted(size, self._options.percentage_of_nodes_to_score)
        names = template.filters.names
        if names is not None:
            return self._search_named(template, info, names)
        special = self._nominated_indexes()
        rules, local = template.rules, template.local
        nodes, refuse_local = self.snapshot.nodes, template.filters.refuse
        found: list[int] = []
        refusals: dict[int, Status] = {}
        start, seen = self._next % size if size else 0, 0
        for index in (*range(start, size), *range(start)):
            seen += 1
            if index in special:
                refused = self.check(template, info, nodes[index])
            else:
                refused = local[index]
                if refused is UNKNOWN:
                    refused = local[index] = refuse_local(nodes[index])
                if refused is None and rules:
                    refused = template.refuse(index, rules)
            if refused is not None:
                refusals[index] = refused
                continue
            found.append(index)
            if len(found) >= wanted:
                break
        self._next = (start + seen) % size if size else 0
        return found, refusals

    def _search_named(
        self, template: Template, info: PodInfo, names: frozenset[str]
    ) -> tuple[list[int], Mapping[int, Status]]:
        """As `_search` where the pod names its nodes: the others need not be looked at."""
        nodes = [self.snapshot.by_name.get(name) for name in sorted(names)]
        found: list[int] = []
        refusals: dict[int, Status] = {}
        for node in nodes:
            if node is None or node.node is None:
                continue
            refused = self.check(template, info, node)
            if refused is None:
                found.append(node.index)
            else:
                refusals[node.index] = refused
        return found, refusals if found else _Absent(refusals)

    def _nominated_indexes(self) -> set[int]:
        return {
            self.snapshot.by_name[name].index
            for name in self.snapshot.nominated
            if name in self.snapshot.by_name
        }

    def _best(self, template: Template, indexes: Sequence[int]) -> int:
        if len(indexes) == 1:
            return indexes[0]
        scores = template.scores(indexes)
        best = max(scores)
        ties = [n for n, score in zip(indexes, scores, strict=True) if score == best]
        return ties[0] if len(ties) == 1 else self._rng.choice(ties)


class _Absent(dict[int, Status]):
    """Refusals where every node that the pod did not name is refused for just that."""

    def __missing__(self, index: int) -> Status:
        return NODE_ABSENT


def rivals_on(snapshot: Snapshot, info: PodInfo, node: str) -> list[PodInfo]:
    """Pods with a place kept on the node that `info` may not take: not less important ones."""
    kept = snapshot.nominated.get(node)
    if not kept:
        return []
    return [pod for pod in kept.values() if pod.priority >= info.priority and pod.uid != info.uid]


@contextmanager
def trying(
    template: Template,
    node: NodeInfo,
    added: Sequence[PodInfo] = (),
    removed: Sequence[PodInfo] = (),
) -> Iterator[None]:
    """The node with these pods on it, or without them, for as long as the block lasts."""
    for pod in removed:
        node.remove(pod)
        template.change(pod, node, -1)
    for pod in added:
        node.add(pod)
        template.change(pod, node, 1)
    try:
        yield
    finally:
        for pod in added:
            node.remove(pod)
            template.change(pod, node, -1)
        for pod in removed:
            node.add(pod)
            template.change(pod, node, 1)
