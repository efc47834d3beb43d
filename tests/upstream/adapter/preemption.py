"""Where upstream's cases of preemption call kcm."""

from __future__ import annotations

import random

from kcm.api.core_v1 import Node, Pod
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.controllers.scheduler import SchedulerOptions
from kcm.controllers.scheduler.nodeinfo import PodInfo
from kcm.controllers.scheduler.placer import Placer
from kcm.controllers.scheduler.preemption import (
    NEVER,
    WAITING,
    Budgets,
    NotHelpful,
    Preemption,
    PreemptionCandidate,
    Preemptor,
)
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.status import UNSCHEDULABLE, FitError, Status
from kcm.controllers.scheduler.template import TemplateContext, Templates
from tests.upstream.adapter import Json, decode
from tests.upstream.cases import Case

_OPTIONS = SchedulerOptions()


class Trial:
    """The nodes of a case with their pods, and the pod that finds no room."""

    def __init__(self, case: Case) -> None:
        self._case = case
        nodes = [decode(obj, "v1", "Node") for obj in case["nodes"]]
        pods = [decode(obj, "v1", "Pod") for obj in (case["pod"], *case["pods"])]
        kind = ("policy/v1", "PodDisruptionBudget")
        budgets = [decode(obj, *kind) for obj in case.get("budgets", ())]
        self._snapshot = Snapshot()
        self._snapshot.update(
            1,
            [node for node in nodes if isinstance(node, Node)],
            [pod for pod in pods if isinstance(pod, Pod)],
        )
        self._info: PodInfo = self._snapshot.pods[pods[0].uid]
        templates = Templates(TemplateContext(self._snapshot, _OPTIONS))
        rng = random.Random(1)
        self._placer = Placer(self._snapshot, templates, _OPTIONS, rng)
        known = Budgets(obj for obj in budgets if isinstance(obj, PodDisruptionBudget))
        self._preemptor = Preemptor(self._placer, known, _OPTIONS, rng)

    def candidates(self) -> Json:
        """Returns the nodes on which preemption makes room, with the victims on each."""
        template = self._placer.templates.of(self._info)
        found = [
            self._preemptor.select_victims(template, self._info, node)
            for node in sorted(self._snapshot.nodes, key=lambda node: node.name)
        ]
        return [
            {
                "name": one.node.name,
                "victims": sorted(victim.name for victim in one.victims),
                "violations": one.violations,
            }
            for one in found
            if isinstance(one, PreemptionCandidate)
        ]

    def is_eligible(self) -> bool:
        """Reports whether the pod may preempt others."""
        code = self._case["code"] or UNSCHEDULABLE
        chosen = self._preempt({node.name: code for node in self._snapshot.nodes})
        return not isinstance(chosen, NotHelpful) or chosen.text not in (NEVER, WAITING)

    def choose(self) -> Json:
        """Returns the node that is chosen, or why none is."""
        nodes = self._snapshot.nodes
        codes = self._case.get("codes") or {node.name: UNSCHEDULABLE for node in nodes}
        chosen = self._preempt(codes)
        if isinstance(chosen, Preemption):
            return {"node": chosen.node.name}
        return {"reasons": [f"preemption: {chosen.text}"]}

    def _preempt(self, codes: dict[str, int]) -> Preemption | NotHelpful:
        statuses = [Status(codes[node.name], "", ()) for node in self._snapshot.nodes]
        return self._preemptor.preempt(self._info, FitError(statuses))
