"""Inter-pod affinity: filters and scores for what pods require and prefer of other pods.

Guarantees: counts follow the snapshot change by change. `change` with the opposite sign undoes a
change, so that a node can be tried with pods added or removed.

Source: pkg/scheduler/framework/plugins/interpodaffinity/{filtering,scoring}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm.controllers.scheduler import status
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.controllers.scheduler.podterms import AffinityTerm, NamespaceLabels
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.status import Status

Domain = tuple[str, str]
"""A topology domain: the label and the value that its nodes have."""
Counts = dict[Domain, int]


def _add(counts: Counts, domain: Domain, amount: int) -> None:
    total = counts.get(domain, 0) + amount
    if total:
        counts[domain] = total
    else:
        counts.pop(domain, None)


class InterPod:
    """The affinity rules between the pods of one template and the pods on nodes."""

    def __init__(self, info: PodInfo, snapshot: Snapshot, hard_weight: int) -> None:
        self._namespace, self._labels = info.namespace, info.labels
        self._terms = info.terms
        self._namespaces: NamespaceLabels = snapshot.namespace_labels
        self._hard_weight = hard_weight
        self._affinity: Counts = {}
        self._anti: Counts = {}
        self._existing: Counts = {}
        self.scores: Counts = {}

    def count_all(self, snapshot: Snapshot) -> InterPod:
        """Counts all pods on nodes that matter, and returns self."""
        for pod in self._relevant(snapshot):
            self.change(pod, snapshot.node_of(pod), 1)
        return self

    def _relevant(self, snapshot: Snapshot) -> Iterable[PodInfo]:
        terms = (*self._terms.affinity, *self._terms.anti_affinity, *self._terms.preferred)
        if not terms:
            return list(snapshot.with_terms.values())
        if any(term.anywhere for term in terms):
            return list(snapshot.pods_in(None))
        named = {name for term in terms for name in term.namespaces}
        others = [p for p in snapshot.with_terms.values() if p.namespace not in named]
        return [*snapshot.pods_in(named), *others]

    @property
    def filters(self) -> bool:
        """Whether the rules may reject any node."""
        return bool(self._terms.affinity or self._terms.anti_affinity or self._existing)

    def change(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        """Counts a pod that came to a node (sign 1) or left it (-1)."""
        if node.node is None:
            return
        terms = self._terms
        if terms.affinity and self._all_match(terms.affinity, pod):
            for term in terms.affinity:
                self._count(self._affinity, term, node, sign)
        for term in terms.anti_affinity:
            if self._matches(term, pod):
                self._count(self._anti, term, node, sign)
        for term in terms.preferred:
            if self._matches(term, pod):
                self._count(self.scores, term, node, sign * term.weight)
        if pod.terms:
            self._change_existing(pod, node, sign)

    def _change_existing(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        """Counts the terms of a pod on a node that select the template's pods."""
        for term in pod.terms.anti_affinity:
            if self._matches_me(term):
                self._count(self._existing, term, node, sign)
        for term in pod.terms.preferred:
            if self._matches_me(term):
                self._count(self.scores, term, node, sign * term.weight)
        if self._hard_weight:
            for term in pod.terms.affinity:
                if self._matches_me(term):
                    self._count(self.scores, term, node, sign * self._hard_weight)

    def _count(self, counts: Counts, term: AffinityTerm, node: NodeInfo, amount: int) -> None:
        value = node.labels.get(term.topology_key)
        if value is not None:
            _add(counts, (term.topology_key, value), amount)

    def _matches(self, term: AffinityTerm, pod: PodInfo) -> bool:
        return term.matches(pod.namespace, pod.labels, self._namespaces)

    def _matches_me(self, term: AffinityTerm) -> bool:
        return term.matches(self._namespace, self._labels, self._namespaces)

    def _all_match(self, terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
        return all(self._matches(term, pod) for term in terms)

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns why the pods cannot go to the node, or None if they can."""
        if self._terms.affinity and not self._is_near(node):
            return status.AFFINITY
        for term in self._terms.anti_affinity:
            value = node.labels.get(term.topology_key)
            if value is not None and self._anti.get((term.topology_key, value), 0) > 0:
                return status.ANTI_AFFINITY
        for (key, value), count in self._existing.items():
            if count > 0 and node.labels.get(key) == value:
                return status.EXISTING_ANTI_AFFINITY
        return None

    def _is_near(self, node: NodeInfo) -> bool:
        near = True
        for term in self._terms.affinity:
            value = node.labels.get(term.topology_key)
            if value is None:
                return False
            near = near and self._affinity.get((term.topology_key, value), 0) > 0
        # The first pod of a group that requires affinity to itself may go to any domain.
        return near or (
            not self._affinity and all(self._matches_me(term) for term in self._terms.affinity)
        )

    def score(self, node: NodeInfo) -> int:
        """Returns the sum of the weights of the preferred terms that hold on the node."""
        labels = node.labels
        keys = {key for key, _ in self.scores}
        return sum(self.scores.get((key, labels[key]), 0) for key in keys if key in labels)
