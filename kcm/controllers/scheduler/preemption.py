"""Preemption: chooses pods of lower priority to evict, so that a pod finds room.

Source: pkg/scheduler/framework/preemption/preemption.go and
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, Kubernetes 1.36.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kcm import errors
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.apimachinery.labels import Selector
from kcm.controllers.scheduler import status
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.controllers.scheduler.options import SchedulerOptions
from kcm.controllers.scheduler.placer import Placer
from kcm.controllers.scheduler.status import FitError, Status, summary
from kcm.controllers.scheduler.template import Template

NEVER = "not eligible due to preemptionPolicy=Never."
WAITING = "not eligible due to a terminating pod on the nominated node."
_NOT_STARTED = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Preemption:
    """The decision to preempt: the node, the victims on it, and pods that lose a nomination."""

    node: NodeInfo
    victims: Sequence[PodInfo]
    losers: Sequence[PodInfo]  # pods of lower priority nominated to this node


@dataclass(frozen=True)
class NotHelpful:
    """Why no pod is preempted. `gives_up` says that an earlier nomination of the pod is removed."""

    text: str
    gives_up: bool = False


@dataclass(frozen=True)
class PreemptionCandidate:
    """A node, the pods whose eviction makes room on it, and how many of these break a budget."""

    node: NodeInfo
    victims: tuple[PodInfo, ...]  # the most important first
    violations: int


class Budgets:
    """The PodDisruptionBudgets, with compiled selectors."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = [(budget, _selector(budget)) for budget in budgets]

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Returns the pods whose eviction violates a budget, and the other pods.

        The pods are counted against the budgets in the order given.
        """
        allowed = [budget.status.disruptions_allowed for budget, _ in self._budgets]
        broken: list[PodInfo] = []
        fine: list[PodInfo] = []
        for pod in pods:
            breaks = False
            for n in self._find_budgets(pod):
                allowed[n] -= 1
                breaks = breaks or allowed[n] < 0
            (broken if breaks else fine).append(pod)
        return broken, fine

    def _find_budgets(self, pod: PodInfo) -> Iterable[int]:
        """Yields the positions of the budgets that select the pod and do not count it yet."""
        if not pod.labels:
            return
        for n, (budget, selector) in enumerate(self._budgets):
            if budget.namespace != pod.namespace or selector.empty:
                continue
            if selector.matches(pod.labels) and pod.name not in (
                budget.status.disrupted_pods or ()
            ):
                yield n


def _selector(budget: PodDisruptionBudget) -> Selector:
    try:
        return Selector.from_label_selector(budget.spec.selector)
    except errors.BadRequest:
        return Selector.nothing()


def importance(pod: PodInfo) -> tuple[int, datetime]:
    """Returns a sort key by which the most important pod comes first.

    Pods of higher priority are more important; of the same priority, those that started earlier.
    """
    return -pod.priority, pod.started or _NOT_STARTED


class Preemptor:
    """Chooses victims of preemption. `rng` chooses where the search among nodes begins."""

    def __init__(
        self, placer: Placer, budgets: Budgets, options: SchedulerOptions, rng: random.Random
    ) -> None:
        self._placer = placer
        self._snapshot = placer.snapshot
        self._budgets = budgets
        self._options = options
        self._rng = rng

    def preempt(self, info: PodInfo, fit_error: FitError) -> Preemption | NotHelpful:
        """Returns whom to preempt for a pod that fits on no node, or why that does not help.

        Changes nothing.
        """
        why = self._not_eligible(info, fit_error)
        if why:
            return NotHelpful(why)
        template = self._placer.templates.of(info)
        candidates, rejections = self._candidates(template, info, fit_error)
        if not candidates:
            return NotHelpful(summary(len(fit_error.statuses), rejections), gives_up=True)
        best = min(candidates, key=_rank)
        kept = self._snapshot.nominated.get(best.node.name, {})
        losers = [pod for pod in kept.values() if pod.priority < info.priority]
        return Preemption(best.node, best.victims, losers)

    def _not_eligible(self, info: PodInfo, fit_error: FitError) -> str:
        if info.source.spec.preemption_policy == "Never":
            return NEVER
        node = self._snapshot.by_name.get(info.nominated)
        if node is None or node.node is None:
            return ""
        if fit_error.statuses[node.index].code == status.UNRESOLVABLE:
            return ""
        lower = (pod for pod in node.pods.values() if pod.priority < info.priority)
        return WAITING if any(pod.is_preempted for pod in lower) else ""

    def _candidates(
        self, template: Template, info: PodInfo, fit_error: FitError
    ) -> tuple[list[PreemptionCandidate], list[Status]]:
        """Returns enough nodes with their victims, and why the other nodes do not help."""
        codes = [candidates.code for candidates in fit_error.statuses]
        nodes = [n for n, code in enumerate(codes) if code == status.UNSCHEDULABLE]
        rejections = [status.NOT_HELPFUL] * (len(codes) - len(nodes))
        wanted = self._candidates_to_find(len(nodes))
        candidates: list[PreemptionCandidate] = []
        harmless = False
        offset = self._rng.randrange(len(nodes)) if nodes else 0
        for index in nodes[offset:] + nodes[:offset]:
            candidate = self.select_victims(template, info, self._snapshot.nodes[index])
            if isinstance(candidate, Status):
                rejections.append(candidate)
                continue
            candidates.append(candidate)
            harmless = harmless or not candidate.violations
            if harmless and len(candidates) >= wanted:
                break
        return candidates, rejections

    def _candidates_to_find(self, nodes: int) -> int:
        share = nodes * self._options.min_candidate_nodes_percentage // 100
        return min(max(share, self._options.min_candidate_nodes_absolute), nodes)

    def select_victims(
        self, template: Template, info: PodInfo, node: NodeInfo
    ) -> PreemptionCandidate | Status:
        """Returns the victims on one node, or why evicting pods there does not help.

        They are as few and as unimportant as possible.
        """
        potential = [pod for pod in node.pods.values() if pod.priority < info.priority]
        if not potential:
            return status.NO_VICTIMS
        trial = _Trial(template, node)
        try:
            for pod in potential:
                trial.remove(pod)
            rejection = self._placer.check(template, info, node)
            if rejection is not None:
                return rejection
            return self._reprieve(trial, info, sorted(potential, key=importance))
        finally:
            trial.undo()

    def _reprieve(
        self, trial: _Trial, info: PodInfo, potential: Sequence[PodInfo]
    ) -> PreemptionCandidate:
        """Returns the candidate without the pods that can stay, of the `potential` victims.

        Pods whose eviction violates a budget are tried first, then the most important ones.
        """
        breaking, fine = self._budgets.split(potential)
        victims: list[PodInfo] = []
        violations = 0
        for pod in (*breaking, *fine):
            trial.add(pod)
            if not self._placer.fits(trial.template, info, trial.node):
                trial.remove(pod)
                victims.append(pod)
                violations += pod in breaking
        return PreemptionCandidate(trial.node, tuple(sorted(victims, key=importance)), violations)


class _Trial:
    """A node from which pods are removed for a trial, until `undo`."""

    def __init__(self, template: Template, node: NodeInfo) -> None:
        self.template = template
        self.node = node
        self._removed: dict[str, PodInfo] = {}

    def remove(self, pod: PodInfo) -> None:
        self.node.remove(pod)
        self.template.change(pod, self.node, -1)
        self._removed[pod.uid] = pod

    def add(self, pod: PodInfo) -> None:
        self.node.add(pod)
        self.template.change(pod, self.node, 1)
        del self._removed[pod.uid]

    def undo(self) -> None:
        for pod in list(self._removed.values()):
            self.add(pod)


def _rank(candidate: PreemptionCandidate) -> tuple[int, int, int, int, float]:
    """Returns a sort key by which the best candidate comes first.

    It has the number of budget violations, the highest priority, the sum of priorities, the number
    of victims, and when the most important victims have started, the latest first.
    """
    victims = candidate.victims
    if not victims:
        return 0, -(2**31), 0, 0, 0.0
    highest = victims[0].priority
    started = min((v.started or _NOT_STARTED) for v in victims if v.priority == highest)
    return (
        candidate.violations,
        highest,
        sum(victim.priority + 2**31 for victim in victims),
        len(victims),
        -started.timestamp(),
    )
