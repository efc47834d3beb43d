"""Topology spread: filters and scores that distribute pods evenly over topology domains.

Guarantees: as in `interpod`, counts follow the snapshot, and the opposite change undoes a change.

Source: pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering,scoring}.go, Kubernetes
1.33.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kcm.api.core_v1.affinity import TopologySpreadConstraint
from kcm.apimachinery.labels import Requirement, Selector
from kcm.controllers.scheduler import status
from kcm.controllers.scheduler.nodeinfo import ZONE, NodeInfo, PodInfo
from kcm.controllers.scheduler.plugins import taints
from kcm.controllers.scheduler.plugins.local import LocalFilters
from kcm.controllers.scheduler.plugins.normalizing import MAX_SCORE
from kcm.controllers.scheduler.podterms import selector_of
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.status import Status

HOSTNAME = "kubernetes.io/hostname"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
# Upstream's systemDefaultConstraints: label and maxSkew, all of them soft.
SYSTEM_DEFAULTS = ((HOSTNAME, 3), (ZONE, 5))


@dataclass(frozen=True, eq=False)
class Constraint:
    """One topologySpreadConstraint of the pod, with a compiled selector."""

    key: str
    max_skew: int
    selector: Selector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    def counts(self, node: NodeInfo, filters: LocalFilters) -> bool:
        """Reports whether the node's pods count, by the constraint's node inclusion policies."""
        if self.honor_affinity and not filters.rule.matches(node.labels, node.name):
            return False
        return not self.honor_taints or not taints.find_untolerated(
            node.taints, filters.tolerations
        )


def constraints_of(info: PodInfo, action: str) -> list[Constraint]:
    """Returns the pod's own constraints with that action: `HARD` or `SOFT`."""
    return [
        _compile(constraint, info.labels)
        for constraint in info.source.spec.topology_spread_constraints or ()
        if constraint.when_unsatisfiable == action
    ]


def _compile(wanted: TopologySpreadConstraint, labels: Mapping[str, str]) -> Constraint:
    keys = [
        Requirement(key, "in", (labels[key],))
        for key in wanted.match_label_keys or ()
        if key in labels
    ]
    return Constraint(
        wanted.topology_key,
        wanted.max_skew,
        selector_of(wanted.label_selector, keys),
        wanted.min_domains or 1,
        (wanted.node_affinity_policy or "Honor") == "Honor",
        wanted.node_taints_policy == "Honor",
    )


def has_keys(node: NodeInfo, constraints: Iterable[Constraint]) -> bool:
    """Reports whether the node has the topology labels of all constraints."""
    return all(constraint.key in node.labels for constraint in constraints)


class _Domains:
    """The number of pods in each topology domain, and the lowest of these numbers."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        # the number of domains by their number of pods
        self._levels: dict[int, int] = {}

    def add(self, domain: str) -> None:
        if domain not in self.counts:
            self.counts[domain] = 0
            self._levels[0] = self._levels.get(0, 0) + 1

    def change(self, domain: str, amount: int) -> None:
        before = self.counts[domain]
        self.counts[domain] = before + amount
        self._levels[before] -= 1
        if not self._levels[before]:
            del self._levels[before]
        self._levels[before + amount] = self._levels.get(before + amount, 0) + 1

    @property
    def least(self) -> int:
        return min(self._levels, default=2**31 - 1)


class HardSpread:
    """The topology spread constraints that must hold for one pod, or any pod of its template."""

    def __init__(
        self,
        info: PodInfo,
        constraints: Sequence[Constraint],
        snapshot: Snapshot,
        filters: LocalFilters,
    ) -> None:
        self._namespace = info.namespace
        self._constraints = constraints
        self._filters = filters
        self._mine = [int(c.selector.matches(info.labels)) for c in constraints]
        self._domains = [_Domains() for _ in constraints]
        for node in snapshot.nodes:
            for constraint, domains in self._list_taking_part(node):
                domains.add(node.labels[constraint.key])
        for pod in snapshot.pods_in([info.namespace]):
            self.change(pod, snapshot.node_of(pod), 1)

    def _list_taking_part(self, node: NodeInfo) -> Iterable[tuple[Constraint, _Domains]]:
        if node.node is None or not has_keys(node, self._constraints):
            return
        for pair in zip(self._constraints, self._domains, strict=True):
            if pair[0].counts(node, self._filters):
                yield pair

    def change(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        """Counts a pod that came to a node (sign 1) or left it (-1)."""
        if pod.namespace != self._namespace or pod.deleting:
            return
        for constraint, domains in self._list_taking_part(node):
            if constraint.selector.matches(pod.labels):
                domains.change(node.labels[constraint.key], sign)

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns why the pod cannot go to the node, or None if it can."""
        for constraint, domains, mine in zip(
            self._constraints, self._domains, self._mine, strict=True
        ):
            domain = node.labels.get(constraint.key)
            if domain is None:
                return status.SPREAD_LABEL
            least = 0 if len(domains.counts) < constraint.min_domains else domains.least
            if domains.counts.get(domain, 0) + mine - least > constraint.max_skew:
                return status.SPREAD
        return None


class SoftSpread:
    """The constraints that only affect scores: the pod's own, or the system's defaults."""

    def __init__(
        self,
        info: PodInfo,
        constraints: Sequence[Constraint],
        snapshot: Snapshot,
        filters: LocalFilters,
        *,
        system: bool,
    ) -> None:
        self._namespace = info.namespace
        self._constraints = constraints
        self._filters = filters
        # With the system's defaults, nodes without the labels take part as well.
        self._all_keys = not system
        # The number of pods by domain; with HOSTNAME, by node name.
        self._counts: list[dict[str, int]] = [{} for _ in constraints]
        # These are computed once for all nodes, by index, since scores are computed often.
        self._part = [not self._all_keys or has_keys(n, constraints) for n in snapshot.nodes]
        self._domains = [[_domain_of(n, c.key) for n in snapshot.nodes] for c in constraints]
        for pod in snapshot.pods_in([info.namespace]):
            self.change(pod, snapshot.node_of(pod), 1)

    def change(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        """Counts a pod that came to a node (sign 1) or left it (-1)."""
        if pod.namespace != self._namespace or pod.deleting or node.node is None:
            return
        if self._all_keys and not has_keys(node, self._constraints):
            return
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            if not constraint.selector.matches(pod.labels):
                continue
            domain = _domain_of(node, constraint.key)
            if domain is None:
                continue
            if constraint.key == HOSTNAME or constraint.counts(node, self._filters):
                counts[domain] = counts.get(domain, 0) + sign

    def scores(self, indexes: Sequence[int]) -> list[int]:
        """Returns scores from 0 to 100 for these nodes, the higher the fewer pods there are."""
        part = [self._part[index] for index in indexes]
        totals = [0.0] * len(indexes)
        for number in range(len(self._constraints)):
            self._add(number, indexes, part, totals)
        raw = [int(total + 0.5) for total in totals]
        counted = raw if all(part) else [s for s, takes in zip(raw, part, strict=True) if takes]
        if not counted:
            return [0] * len(indexes)
        least, most = min(counted), max(counted)
        if not most:
            return [MAX_SCORE if takes else 0 for takes in part]
        return [
            MAX_SCORE * (most + least - score) // most if takes else 0
            for score, takes in zip(raw, part, strict=True)
        ]

    def _add(
        self, number: int, indexes: Sequence[int], part: Sequence[bool], totals: list[float]
    ) -> None:
        constraint, domains = self._constraints[number], self._domains[number]
        counts, extra = self._counts[number], constraint.max_skew - 1
        if constraint.key == HOSTNAME:
            size = sum(part)
        else:
            size = len({domains[i] for i, takes in zip(indexes, part, strict=True) if takes})
        weight = math.log(size + 2)
        for n, index in enumerate(indexes):
            domain = domains[index]
            if domain is not None:
                totals[n] += counts.get(domain, 0) * weight + extra


def _domain_of(node: NodeInfo, key: str) -> str | None:
    """Returns the topology domain of a node, or None if it has no such label."""
    if key not in node.labels:
        return None
    return node.name if key == HOSTNAME else node.labels[key]


def system_constraints(selector: Selector | None) -> list[Constraint]:
    """Returns the system's default constraints, which count the pods that the selector matches."""
    if selector is None or selector.empty:
        return []
    return [Constraint(key, skew, selector) for key, skew in SYSTEM_DEFAULTS]
