"""Templates: the filters and scores of pods with the same requirements, computed once for all.

Guarantees: a template is only used for pods that have the same value of everything that filters and
scores use (`signature`). After `catch_up` it agrees with the snapshot. Upstream filters and scores
each pod by itself (and caches the results for equal pods from 1.35 on).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kcm.api.core_v1 import Pod
from kcm.apimachinery.labels import Selector
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo, owner_of
from kcm.controllers.scheduler.options import SchedulerOptions
from kcm.controllers.scheduler.plugins import taints
from kcm.controllers.scheduler.plugins.interpod import InterPod
from kcm.controllers.scheduler.plugins.local import (
    LocalFilters,
    list_images,
    score_images,
    score_resources,
)
from kcm.controllers.scheduler.plugins.normalizing import reverse, scale, stretch
from kcm.controllers.scheduler.plugins.spread import (
    HARD,
    SOFT,
    HardSpread,
    SoftSpread,
    constraints_of,
    system_constraints,
)
from kcm.controllers.scheduler.plugins.volumes import VolumeRule
from kcm.controllers.scheduler.snapshot import Snapshot, SnapshotChange
from kcm.controllers.scheduler.status import FitError, Status

TAINT_WEIGHT, AFFINITY_WEIGHT, INTERPOD_WEIGHT, SPREAD_WEIGHT = 3, 2, 2, 2
UNKNOWN = Status(0, "", ())  # the filters have to run again, because the node changed
_MOST_TEMPLATES = 64  # templates that are kept; the least recently used is dropped first

Rule = HardSpread | InterPod | VolumeRule
DefaultSelector = Callable[[PodInfo], Selector | None]


def no_selector(info: PodInfo) -> Selector | None:
    """Returns None, as for pods that neither an owner nor a Service selects."""
    return None


@dataclass(frozen=True)
class TemplateContext:
    """What templates are built from."""

    snapshot: Snapshot
    options: SchedulerOptions
    default_selector: DefaultSelector = no_selector


class Template:
    """The filters and scores for all pods with the same requirements."""

    def __init__(self, info: PodInfo, context: TemplateContext) -> None:
        self.snapshot = context.snapshot
        self._context = context
        self._model = PodInfo(info.source)  # stands for all pods of the template
        self.filters = LocalFilters(info)
        self._images = list_images(info.source)
        self._begin()

    def _begin(self) -> None:
        snapshot = self.snapshot
        self._layout = snapshot.layout
        self._position = snapshot.log_end
        self.local: list[Status | None] = [UNKNOWN] * len(snapshot.nodes)
        # By node index: what the filters of single nodes say while the pods that are nominated to
        # the node are on it, and the snapshot's `nominated_at` then.
        self.contested: dict[int, tuple[int, Status | None]] = {}
        self._resources = [-1] * len(snapshot.nodes)  # scores of weight 1; -1 if unknown
        self._begin_rules()
        # The last fit error, and the snapshot's `log_end` and `nominations` at that time.
        self.failed: tuple[tuple[int, int], FitError] | None = None

    def _begin_rules(self) -> None:
        info, context, snapshot = self._model, self._context, self.snapshot
        hard = constraints_of(info, HARD)
        self.hard_spread = HardSpread(info, hard, snapshot, self.filters) if hard else None
        own = constraints_of(info, SOFT)
        system = not info.source.spec.topology_spread_constraints
        soft = system_constraints(context.default_selector(info)) if system else own
        self.soft_spread = (
            SoftSpread(info, soft, snapshot, self.filters, system=system) if soft else None
        )
        self._interpod: InterPod | None = None
        if info.terms or snapshot.with_terms:
            self._interpod = self._new_interpod().count_all(snapshot)

    def _new_interpod(self) -> InterPod:
        weight = self._context.options.hard_pod_affinity_weight
        return InterPod(self._model, self.snapshot, weight)

    # --- following the snapshot

    def catch_up(self) -> None:
        """Applies the changes of the snapshot since the last call."""
        snapshot = self.snapshot
        if self._layout != snapshot.layout or self._position < snapshot.log_start:
            self._begin()
            return
        start = self._position - snapshot.log_start
        if start == len(snapshot.log):
            return
        for delta in snapshot.log[start:]:
            self._follow(delta)
        self._position = snapshot.log_end

    def _follow(self, delta: SnapshotChange) -> None:
        node, pod, sign = delta
        if 0 <= node.index < len(self.local):
            self.local[node.index] = UNKNOWN
            self.contested.pop(node.index, None)
            self._resources[node.index] = -1
        if pod is None:
            if self.hard_spread or self.soft_spread:
                self._begin_rules()  # nodes count or not by their taints
        else:
            self.change(pod, node, sign)

    def change(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        """Counts a pod that came to a node (sign 1) or left it (-1), in reality or for a trial."""
        if self.hard_spread is not None:
            self.hard_spread.change(pod, node, sign)
        if self.soft_spread is not None:
            self.soft_spread.change(pod, node, sign)
        if self._interpod is None and pod.terms:
            self._interpod = self._new_interpod()  # the first pod with terms
        if self._interpod is not None:
            self._interpod.change(pod, node, sign)

    # --- filters

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The filters that depend on other nodes, in upstream's order."""
        rules: list[Rule] = []
        if self.hard_spread is not None:
            rules.append(self.hard_spread)
        if self._interpod is not None and self._interpod.filters:
            rules.append(self._interpod)
        return tuple(rules)

    def filter(self, index: int, rules: Sequence[Rule]) -> Status | None:
        """Returns why the pods cannot go to the node with this index, or None if they can."""
        rejection = self.local[index]
        node = self.snapshot.nodes[index]
        if rejection is UNKNOWN:
            rejection = self.local[index] = self.filters.filter(node)
        if rejection is not None:
            return rejection
        for rule in rules:
            rejection = rule.filter(node)
            if rejection is not None:
                return rejection
        return None

    def try_out(self, node: NodeInfo, own: Sequence[Rule] = ()) -> Status | None:
        """Returns what `filter` would return for the node's present state, without caching it.

        `own` has the rules of one pod of the template.
        """
        rejection = self.filters.filter(node)
        for rule in (*own, *self.rules):
            rejection = rejection or rule.filter(node)
        return rejection

    # --- scores

    def scores(self, indexes: Sequence[int]) -> list[int]:
        """Returns the weighted sums of all scores, of feasible nodes given by their indexes."""
        nodes = [self.snapshot.nodes[index] for index in indexes]
        totals = [self._local_score(index) for index in indexes]
        if self.soft_spread is not None:
            _add(totals, self.soft_spread.scores(indexes), SPREAD_WEIGHT)
        if any(node.taints for node in nodes):
            counts = [
                taints.count_untolerated_soft(n.taints, self.filters.tolerations) for n in nodes
            ]
            _add(totals, reverse(counts), TAINT_WEIGHT)
        if self.filters.rule.preferred:
            wishes = [self.filters.rule.score(n.labels, n.name) for n in nodes]
            _add(totals, scale(wishes), AFFINITY_WEIGHT)
        if self._interpod is not None and self._interpod.scores:
            sums = [self._interpod.score(node) for node in nodes]
            _add(totals, stretch(sums), INTERPOD_WEIGHT)
        return totals

    def _local_score(self, index: int) -> int:
        score = self._resources[index]
        if score < 0:
            node = self.snapshot.nodes[index]
            score = score_resources(self.filters.requests, node)
            if node.images:
                nodes = len(self.snapshot.nodes)
                score += score_images(self._images, node, self.snapshot.images, nodes)
            self._resources[index] = score
        return score


def _add(totals: list[int], scores: Sequence[int], weight: int) -> None:
    for n, score in enumerate(scores):
        totals[n] += weight * score


# --- which pods have the same requirements


def signature(info: PodInfo) -> tuple[Any, ...]:
    """Returns a value that is equal for pods with the same requirements.

    It contains everything of a pod that filters and scores use.
    """
    pod: Pod = info.source
    spec = pod.spec
    return (
        info.namespace,
        info.priority,
        info.requests,
        info.ports,
        tuple(info.labels.items()),
        tuple((spec.node_selector or {}).items()),
        repr(spec.affinity) if spec.affinity else "",
        tuple((t.key, t.operator, t.value, t.effect) for t in spec.tolerations or ()),
        repr(spec.topology_spread_constraints) if spec.topology_spread_constraints else "",
        list_images(pod),
        owner_of(pod),
        spec.preemption_policy,
    )


class Templates:
    """The templates in use. Not thread-safe."""

    def __init__(self, context: TemplateContext) -> None:
        self._context = context
        self._by_signature: dict[tuple[Any, ...], Template] = {}

    def of(self, info: PodInfo) -> Template:
        """Returns the template for the pod, after updating it from the snapshot."""
        key = signature(info)
        template = self._by_signature.pop(key, None)
        if template is None:
            template = Template(info, self._context)
            while len(self._by_signature) >= _MOST_TEMPLATES:
                self._by_signature.pop(next(iter(self._by_signature)))
        else:
            template.catch_up()
        self._by_signature[key] = template  # the most recently used is the last
        return template

    def clear(self) -> None:
        """Drops all templates, because the selectors they were built from have changed."""
        self._by_signature.clear()
