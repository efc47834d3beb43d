"""Runs one sync of an autoscaler for tests, and reads its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcm.api.apps_v1 import Deployment, ReplicaSet
from kcm.api.autoscaling_v2 import HorizontalPodAutoscaler
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.horizontalpodautoscaling import HorizontalPodAutoscalerController
from kcm.controllers.horizontalpodautoscaling.options import HorizontalPodAutoscalerOptions
from kcm.reconcile.plan import Outcome, Patch, Plan
from kcm.testing import builders
from kcm.testing.views import NOW, FakeView
from tests.unit.controllers.autoscaling import (
    FakeMetrics,
    pod,
)

CONTROLLER = HorizontalPodAutoscalerController()
WITHOUT_TOLERANCE = HorizontalPodAutoscalerController(
    HorizontalPodAutoscalerOptions(hpa_configurable_tolerance=False)
)
NO_HISTORY = {"uid": "uid-of-web", "recommendations": f"0@{NOW.timestamp() - 1:.3f}"}


def web(replicas: int | None = 3, **changes: Any) -> KubeObject:
    status = {"replicas": replicas or 0}
    return builders.deployment("web", replicas=replicas, status=status, **changes)


def three(percent: int) -> FakeMetrics:
    """Returns metrics in which each of three pods uses `percent` percent of one CPU."""
    return FakeMetrics(cpu={f"p{n}": f"{percent * 10}m" for n in range(3)})


PODS = [pod(f"p{n}") for n in range(3)]


def sync(
    hpa: HorizontalPodAutoscaler,
    metrics: FakeMetrics,
    target: KubeObject | None = None,
    pods: Sequence[Pod] = PODS,
    *others: KubeObject,
    memory: dict[str, str] | None = None,
    controller: HorizontalPodAutoscalerController = CONTROLLER,
    now: Any = NOW,
) -> Plan:
    objects = [hpa, target or web(), *pods, *others]
    view = FakeView(
        *objects,
        controller=controller,
        metrics=metrics,
        memory=NO_HISTORY if memory is None else memory,
        now=now,
    )
    return controller.reconcile(hpa.key, view)


def compute_outcome(plan: Plan, meanwhile: KubeObject | None = None) -> Outcome:
    """Returns the outcome of the plan's patches, as if each had been written.

    `meanwhile` is the target's stored state at the time of the write; None means the state that the
    plan saw.
    """
    patches = [write for write in plan.writes if isinstance(write, Patch)]
    assert patches == plan.writes
    return Outcome([(patch, patch.change(meanwhile or patch.old)) for patch in patches])


def replicas_of(obj: KubeObject) -> int | None:
    """Returns the number of replicas that a target's spec asks for."""
    assert isinstance(obj, Deployment | ReplicaSet)
    return obj.spec.replicas


def carry_out(plan: Plan) -> tuple[int | None, HorizontalPodAutoscaler | None, Plan]:
    """Returns the target's new replicas, the autoscaler with its new status, and the following
    plan.

    The replicas are None if the plan does not scale the target, the autoscaler is None if its
    status is not written.
    """
    outcome = compute_outcome(plan)
    replicas = next((replicas_of(obj) for _, obj in outcome.done), None)
    update = plan.status_after(outcome)
    after = plan.plan_after(outcome) if plan.plan_after else plan
    new: Any = update.new if update else None
    return replicas, new, after


def conditions(hpa: HorizontalPodAutoscaler | None) -> dict[str, tuple[str, str | None]]:
    assert hpa is not None
    return {c.type: (c.status, c.reason) for c in hpa.status.conditions or ()}


def message(hpa: HorizontalPodAutoscaler | None, type_: str) -> str | None:
    assert hpa is not None
    return next(c.message for c in hpa.status.conditions or () if c.type == type_)
