"""Finds a node for a pod, one pod after the other.

Guarantees: each decision takes the earlier ones of the pass into account, and the room of nominated
pods of the same or a higher priority.

Source: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, numFeasibleNodesToFind,
selectHost), Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.controllers.scheduler.options import SchedulerOptions
from kcm.controllers.scheduler.plugins.prefilter import volume_rule_of
from kcm.controllers.scheduler.plugins.volumes import VolumeRule
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.status import NODE_ABSENT, FitError, Status
from kcm.controllers.scheduler.template import UNKNOWN, Template, Templates
from kcm.controllers.scheduler.volumes.view import StorageView

MIN_FEASIBLE = 100  # the least number of feasible nodes to find, whatever the percentage
MIN_PERCENTAGE = 5


def feasible_nodes_to_find(nodes: int, percentage: int) -> int:
    """Returns the number of feasible nodes at which the search among `nodes` nodes stops.

    With a percentage of 0, the share depends on the number of nodes.
    """
    if nodes < MIN_FEASIBLE:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, MIN_PERCENTAGE)
    return max(nodes * percentage // 100, MIN_FEASIBLE)


class Placer:
    """Chooses nodes for pods. `rng` breaks ties."""

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
        self._next = 0  # the index where the next search begins
        self.storage: StorageView | None = None  # of this pass
        self._own_rules: tuple[str, VolumeRule | Status | None] = ("", None)  # of the last pod

    def place(self, info: PodInfo) -> NodeInfo | FitError:
        """Returns the node for the pod, or a fit error if there is none. Changes nothing."""
        template = self.templates.of(info)
        own = self.volume_rule(info)
        if isinstance(own, Status):
            every = [own] * len(self.snapshot.nodes)
            return FitError(every, prefilter=", ".join(own.reasons))
        if info.nominated:
            node = self.snapshot.by_name.get(info.nominated)
            if node is not None and node.node is not None and self.fits(template, info, node):
                return node
        moment = (self.snapshot.log_end, self.snapshot.nominations)
        failures = template.failed
        if failures and failures[0] == moment and not info.nominated and own is None:
            return failures[1]
        indexes, rejections = self._search(template, info)
        if not indexes:
            fit_error = FitError([rejections[n] for n in range(len(self.snapshot.nodes))])
            if own is None:
                template.failed = (moment, fit_error)
            return fit_error
        return self.snapshot.nodes[self._best(template, indexes)]

    def volume_rule(self, info: PodInfo) -> VolumeRule | Status | None:
        """Returns the volume filters of a pod with claims, or why no node can have it.

        Returns None for a pod without claims.
        """
        if not info.claims or self.storage is None:
            return None
        if self._own_rules[0] != info.uid:
            self._own_rules = (info.uid, volume_rule_of(info, self.storage))
        return self._own_rules[1]

    def begin_pass(self, storage: StorageView | None) -> None:
        """Sets what the pass knows of claims and volumes."""
        self.storage = storage
        self.forget_rules()

    def forget_rules(self) -> None:
        """Makes the rules of the last pod anew when they are asked for: volumes were reserved."""
        self._own_rules = ("", None)

    def _rules_of(self, info: PodInfo) -> tuple[VolumeRule, ...]:
        own = self.volume_rule(info)
        return (own,) if isinstance(own, VolumeRule) else ()

    def fits(self, template: Template, info: PodInfo, node: NodeInfo) -> bool:
        """Reports whether the pod fits on the node, also with the pods nominated to it."""
        return self.check(template, info, node) is None

    def check(self, template: Template, info: PodInfo, node: NodeInfo) -> Status | None:
        """Returns why the pod does not fit on the node, or None if it does.

        It has to fit both with the more important pods that are nominated to the node, and without
        them.
        """
        rivals = rivals_on(self.snapshot, info, node.name)
        own = self._rules_of(info)
        if rivals:
            with with_pods(template, node, rivals):
                rejection = template.try_out(node, own)
            if rejection is not None:
                return rejection
        return template.try_out(node, own)

    def _search(self, template: Template, info: PodInfo) -> tuple[list[int], Mapping[int, Status]]:
        """Returns the indexes of enough feasible nodes, and why other nodes are not feasible."""
        size = len(self.snapshot.nodes)
        wanted = feasible_nodes_to_find(size, self._options.percentage_of_nodes_to_score)
        names = template.filters.names
        if names is not None:
            return self._search_named(template, info, names)
        special = self._find_nominated()
        rules, local = (*self._rules_of(info), *template.rules), template.local
        nodes, filter_local = self.snapshot.nodes, template.filters.filter
        feasible: list[int] = []
        rejections: dict[int, Status] = {}
        start, seen = self._next % size if size else 0, 0
        for index in (*range(start, size), *range(start)):
            seen += 1
            if index in special:
                rejection = self._check_contested(template, info, nodes[index])
            else:
                rejection = local[index]
                if rejection is UNKNOWN:
                    rejection = local[index] = filter_local(nodes[index])
                if rejection is None and rules:
                    rejection = template.filter(index, rules)
            if rejection is not None:
                rejections[index] = rejection
                continue
            feasible.append(index)
            if len(feasible) >= wanted:
                break
        self._next = (start + seen) % size if size else 0
        return feasible, rejections

    def _check_contested(self, template: Template, info: PodInfo, node: NodeInfo) -> Status | None:
        """Returns what `check` returns for a node with nominated pods.

        Where only the node and its pods decide, that is computed once for all pods of the template.
        """
        own = self._rules_of(info)
        if info.nominated or template.rules or any(rule.counts_pods_of(node) for rule in own):
            return self.check(template, info, node)
        moment = self.snapshot.nominated_at[node.name]
        checked = template.contested.get(node.index)
        if checked is None or checked[0] != moment:
            with with_pods(template, node, rivals_on(self.snapshot, info, node.name)):
                rejection = template.filters.filter(node)
            checked = moment, rejection or template.filters.filter(node)
            template.contested[node.index] = checked
        rejection = checked[1]
        for rule in own:
            rejection = rejection or rule.filter(node)
        return rejection

    def _search_named(
        self, template: Template, info: PodInfo, names: frozenset[str]
    ) -> tuple[list[int], Mapping[int, Status]]:
        """Searches as `_search` does, but only among the nodes that the pod names."""
        nodes = [self.snapshot.by_name.get(name) for name in sorted(names)]
        feasible: list[int] = []
        rejections: dict[int, Status] = {}
        for node in nodes:
            if node is None or node.node is None:
                continue
            rejection = self.check(template, info, node)
            if rejection is None:
                feasible.append(node.index)
            else:
                rejections[node.index] = rejection
        return feasible, rejections if feasible else _Absent(rejections)

    def _find_nominated(self) -> set[int]:
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
    """Rejections by node index; an index without one is a node that the pod does not name."""

    def __missing__(self, index: int) -> Status:
        return NODE_ABSENT


def rivals_on(snapshot: Snapshot, info: PodInfo, node: str) -> list[PodInfo]:
    """Returns the pods nominated to the node that are at least as important as `info`."""
    kept = snapshot.nominated.get(node)
    if not kept:
        return []
    return [pod for pod in kept.values() if pod.priority >= info.priority and pod.uid != info.uid]


@contextmanager
def with_pods(template: Template, node: NodeInfo, pods: Sequence[PodInfo]) -> Iterator[None]:
    """Adds these pods to the node within this context."""
    for pod in pods:
        node.add(pod)
        template.change(pod, node, 1)
    try:
        yield
    finally:
        for pod in pods:
            node.remove(pod)
            template.change(pod, node, -1)
