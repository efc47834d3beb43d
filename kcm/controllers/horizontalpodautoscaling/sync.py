"""Builds the plan of one sync of an autoscaler from its target and its metrics.

Source: reconcileAutoscaler and computeReplicasForMetrics in
pkg/controller/podautoscaler/horizontal.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from kcm.api.autoscaling_v2 import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerStatus,
    HPAScalingRules,
    MetricStatus,
)
from kcm.api.scaling import scale_of, with_replicas
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.horizontalpodautoscaling.behavior import Bounds, Normalizer
from kcm.controllers.horizontalpodautoscaling.calculator import (
    Calculator,
    CalculatorRules,
    Tolerances,
)
from kcm.controllers.horizontalpodautoscaling.conditions import (
    ABLE,
    ACTIVE,
    LIMITED,
    with_condition,
)
from kcm.controllers.horizontalpodautoscaling.counts import COMPUTATIONS, RECONCILIATIONS
from kcm.controllers.horizontalpodautoscaling.history import History
from kcm.controllers.horizontalpodautoscaling.options import HorizontalPodAutoscalerOptions
from kcm.controllers.horizontalpodautoscaling.proposals import MetricReader, Proposal, ProposalError
from kcm.controllers.horizontalpodautoscaling.targets import (
    ScaleTarget,
    SelectorError,
    TargetError,
    pods_of,
    target_of,
)
from kcm.sdk import Counts, Event, Outcome, Patch, Plan, UpdateStatus, View, sum_counts

log = structlog.get_logger("kcm.controllers.horizontalpodautoscaling")


class _EndedError(Exception):
    """Raised when a sync cannot decide on a scale. Conditions and Events report the reason.

    `of_spec` says whether the autoscaler's spec is the cause.
    """

    def __init__(self, why: str, *, of_spec: bool = False) -> None:
        super().__init__(why)
        self.of_spec = of_spec


@dataclass(frozen=True)
class _DesiredReplicas:
    """The replicas to scale to, the reason for Events, and the status of the metrics."""

    replicas: int
    why: str = ""
    statuses: Sequence[MetricStatus] = ()


class Sync:
    """Builds the plan of one sync of one autoscaler."""

    def __init__(
        self, hpa: HorizontalPodAutoscaler, view: View, options: HorizontalPodAutoscalerOptions
    ) -> None:
        self._hpa = hpa
        self._view = view
        self._options = options
        self._now = view.now
        self._status = hpa.status
        self._history = History.load(view.memory, hpa.uid)
        window = options.horizontal_pod_autoscaler_downscale_stabilization
        self._normalizer = Normalizer(hpa.spec.behavior, window, view.now)
        self._period = options.horizontal_pod_autoscaler_sync_period.total_seconds()
        self._plan = Plan(requeue_after=self._period)
        self._counts: dict[str, int] = {}
        self._partial = ""  # why some of the metrics could not be read

    def plan(self) -> Plan:
        """Returns the plan of the sync."""
        rescales = False
        try:
            target = self._target()
            desired = self._desired_replicas(target)
        except _EndedError as failed:
            log.warning(
                "cannot compute the scale of an autoscaler's target",
                hpa=self._hpa.key,
                error=str(failed),
            )
            self._count("none", "spec" if failed.of_spec else "internal")
        else:
            rescales = self._rescale(desired, target)
        if not rescales:
            update = self._update_of(self._status)
            self._plan.status_after = lambda outcome: update
        self._plan.state = self._history.state()
        self._plan.counts = self._counts
        return self._plan

    # --- the target

    def _target(self) -> ScaleTarget:
        try:
            target = target_of(self._hpa, self._view)
        except TargetError as error:
            self._record("FailedGetScale", str(error))
            why = f"the HPA controller was unable to get the target's current scale: {error}"
            self._set(ABLE, "FailedGetScale", why, holds=False)
            raise _EndedError(str(error), of_spec=error.of_spec) from error
        message = "the HPA controller was able to get the target's current scale"
        self._set(ABLE, "SucceededGetScale", message, holds=True)
        if not self._history.recommendations:
            # The present scale is the first recommendation, so that the first values of the
            # metrics, which may be few, do not scale down at once.
            self._remember_recommendation(target.replicas)
        return target

    def _desired_replicas(self, target: ScaleTarget) -> _DesiredReplicas:
        spec, current = self._hpa.spec, target.replicas
        low = 1 if spec.min_replicas is None else spec.min_replicas
        if current == 0:  # the gate HPAScaleToZero, which starts it again, is off
            why = "scaling is disabled since the replica count of the target is zero"
            self._set(ACTIVE, "ScalingDisabled", why, holds=False)
            return _DesiredReplicas(current)
        if current > spec.max_replicas:
            return _DesiredReplicas(
                spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"
            )
        if current < low:
            return _DesiredReplicas(low, "Current number of replicas below Spec.MinReplicas")
        statuses, proposal = self._best(target)
        bounds = Bounds(current, low, spec.max_replicas)
        replicas = self._limit(proposal.replicas, bounds)
        why = "" if proposal.replicas == current else "All metrics below target"
        if proposal.replicas > current:
            why = f"{proposal.name} above target"
        return _DesiredReplicas(replicas, why, statuses)

    # --- the metrics

    def _best(self, target: ScaleTarget) -> tuple[list[MetricStatus], Proposal]:
        """Returns the status of each metric, and the proposal that asks for the most replicas.

        Raises _EndedError if no proposal may be followed.
        """
        asking = self._metric_reader(target)
        specs = self._hpa.spec.metrics or ()
        statuses, proposals, failures = [], [], []
        for spec in specs:
            status = MetricStatus()
            try:
                proposal = asking.propose(spec)
            except ProposalError as failure:
                self._record(failure.reason, failure.why)
                failures.append(failure)
                self._count_metric(spec.type, "none", "spec" if failure.of_spec else "internal")
            else:
                proposals.append(proposal)
                status = proposal.status
                self._count_metric(spec.type, _action(proposal.replicas, target.replicas))
            statuses.append(status)
        best = max(proposals, key=lambda proposal: proposal.replicas, default=None)
        self._judge(failures, len(specs), best, target, statuses)
        assert best is not None
        return statuses, best

    def _metric_reader(self, target: ScaleTarget) -> MetricReader:
        try:
            pods = pods_of(self._hpa, target, self._view)
        except SelectorError as error:
            self._record(error.event, str(error))
            self._set(ACTIVE, error.reason, error.message, holds=False)
            raise self._end_without_replicas(str(error), target, ()) from error
        calculator = Calculator(target.replicas, pods, self._rules())
        present = target.scale.status_replicas
        view = self._view
        return MetricReader(self._hpa.namespace, view.metrics, calculator, present, view.scheme)

    def _judge(
        self,
        failures: Sequence[ProposalError],
        asked: int,
        best: Proposal | None,
        target: ScaleTarget,
        statuses: Sequence[MetricStatus],
    ) -> None:
        """Raises _EndedError if the best proposal must not be followed.

        If metrics are missing, the target is never scaled down, since one of them might ask for
        more replicas.
        """
        first = failures[0] if failures else None
        if first is not None:
            why = f"invalid metrics ({len(failures)} invalid out of {asked}), first error is: "
            self._partial = why + first.summary
        if best is not None and (first is None or best.replicas >= target.replicas):
            message = "the HPA was able to successfully calculate a replica count from"
            self._set(ACTIVE, "ValidMetricFound", f"{message} {best.name}", holds=True)
            return
        if first is not None:
            unable = f"the HPA was unable to compute the replica count: {first.why}"
            self._set(ACTIVE, first.reason, unable, holds=False)
        raise self._end_without_replicas(self._partial or "no metrics", target, statuses)

    def _end_without_replicas(
        self, why: str, target: ScaleTarget, statuses: Sequence[MetricStatus]
    ) -> _EndedError:
        self._update_status(target.replicas, self._status.desired_replicas, statuses)
        self._record("FailedComputeMetricsReplicas", why)
        return _EndedError(why)

    def _rules(self) -> CalculatorRules:
        options = self._options
        return CalculatorRules(
            self._tolerances(),
            options.horizontal_pod_autoscaler_cpu_initialization_period,
            options.horizontal_pod_autoscaler_initial_readiness_delay,
            self._now,
        )

    def _tolerances(self) -> Tolerances:
        usual, behavior = self._options.horizontal_pod_autoscaler_tolerance, self._hpa.spec.behavior
        if behavior is None or not self._options.hpa_configurable_tolerance:
            return Tolerances(usual, usual)
        return Tolerances(
            _get_tolerance(behavior.scale_down, usual), _get_tolerance(behavior.scale_up, usual)
        )

    # --- limits

    def _limit(self, wanted: int, bounds: Bounds) -> int:
        decision = self._normalizer.decide(wanted, bounds, self._history)
        self._remember_recommendation(wanted)
        self._set(ABLE, *decision.able, holds=True)
        self._set(LIMITED, *decision.limit, holds=decision.limited)
        return decision.replicas

    def _remember_recommendation(self, replicas: int) -> None:
        window = self._normalizer.longest_window
        self._history = self._history.with_recommendation(replicas, self._now, window)

    # --- the plan

    def _rescale(self, desired: _DesiredReplicas, target: ScaleTarget) -> bool:
        """Plans the target's new scale. Returns False if the scale stays as it is."""
        before, after = target.replicas, desired.replicas
        if after == before:
            self._count("none", "internal" if self._partial else "none")
            self._update_status(before, before, desired.statuses)
            return False
        self._plan.counts_after = partial(self._counts_after, target, desired)
        self._plan.then(Patch(target.obj, partial(_set_replicas, target, after), scale=True))
        self._plan.status_after = partial(self._status_after, target, desired)
        self._plan.events_after = partial(self._events_after, target, desired)
        self._plan.plan_after = partial(self._remember, target, desired)
        return True

    def _status_after(
        self, target: ScaleTarget, desired: _DesiredReplicas, outcome: Outcome
    ) -> UpdateStatus | None:
        before, status = target.replicas, self._status
        desired_replicas = before
        if outcome.error is not None:
            why = f"the HPA controller was unable to update the target scale: {outcome.error}"
            status = self._with(status, ABLE, "FailedUpdateScale", why, holds=False)
            desired_replicas = self._hpa.status.desired_replicas
        elif _is_rescaled(target, desired.replicas, outcome):
            done = f"the HPA controller was able to update the target scale to {desired.replicas}"
            status = self._with(status, ABLE, "SucceededRescale", done, holds=True)
            status = status.replace(last_scale_time=self._now.replace(microsecond=0))
            desired_replicas = desired.replicas
        return self._update_of(_with_replicas(status, before, desired_replicas, desired.statuses))

    def _counts_after(
        self, target: ScaleTarget, desired: _DesiredReplicas, outcome: Outcome
    ) -> Counts:
        """Returns the count of the sync. The action is `none` if the scale was not changed."""
        is_done = outcome.error is None and _is_rescaled(target, desired.replicas, outcome)
        action = _action(desired.replicas, target.replicas) if is_done else "none"
        failed = bool(self._partial) or outcome.error is not None
        return RECONCILIATIONS.count(action, "internal" if failed else "none")

    def _events_after(
        self, target: ScaleTarget, desired: _DesiredReplicas, outcome: Outcome
    ) -> list[Event]:
        size = f"New size: {desired.replicas}; reason: {desired.why}"
        if outcome.error is not None:
            message = f"{size}; error: {outcome.error}"
            return [Event(self._hpa, "Warning", "FailedRescale", message)]
        if not _is_rescaled(target, desired.replicas, outcome):
            return []
        return [Event(self._hpa, "Normal", "SuccessfulRescale", size)]

    def _remember(self, target: ScaleTarget, desired: _DesiredReplicas, outcome: Outcome) -> Plan:
        history, after = self._history, desired.replicas
        if self._hpa.spec.behavior is not None and _is_rescaled(target, after, outcome):
            up, down = self._normalizer.periods
            history = history.with_rescale(target.replicas, after, self._now, up, down)
        return Plan(state=history.state(), requeue_after=self._period)

    def _update_status(self, current: int, desired: int, statuses: Sequence[MetricStatus]) -> None:
        self._status = _with_replicas(self._status, current, desired, statuses)

    def _update_of(self, status: HorizontalPodAutoscalerStatus) -> UpdateStatus | None:
        if status == self._hpa.status:
            return None
        return UpdateStatus(self._hpa.with_status(status), self._hpa)

    # --- conditions, Events and counts

    def _set(self, type_: str, reason: str, message: str, *, holds: bool) -> None:
        self._status = self._with(self._status, type_, reason, message, holds=holds)

    def _with(
        self,
        status: HorizontalPodAutoscalerStatus,
        type_: str,
        reason: str,
        message: str,
        *,
        holds: bool,
    ) -> HorizontalPodAutoscalerStatus:
        condition = HorizontalPodAutoscalerCondition(
            type=type_, status=str(holds), reason=reason, message=message
        )
        return with_condition(status, condition, self._now)

    def _record(self, reason: str, message: str) -> None:
        self._plan.record(self._hpa, reason, message, warning=True)

    def _count(self, action: str, error: str) -> None:
        self._counts |= RECONCILIATIONS.count(action, error)

    def _count_metric(self, type_: str, action: str, error: str = "none") -> None:
        self._counts = sum_counts((self._counts, COMPUTATIONS.count(action, error, type_)))


def _with_replicas(
    status: HorizontalPodAutoscalerStatus,
    current: int,
    desired: int,
    metrics: Sequence[MetricStatus],
) -> HorizontalPodAutoscalerStatus:
    return status.replace(
        current_replicas=current, desired_replicas=desired, current_metrics=list(metrics) or None
    )


def _set_replicas(target: ScaleTarget, replicas: int, obj: KubeObject) -> KubeObject:
    """Returns the object with the new scale.

    Returns it unchanged if its scale was changed meanwhile, perhaps to 0 to stop the autoscaler.
    """
    if scale_of(obj, target.resource).replicas != target.replicas:
        return obj
    return with_replicas(obj, replicas, target.resource)


def _is_rescaled(target: ScaleTarget, replicas: int, outcome: Outcome) -> bool:
    return any(scale_of(obj, target.resource).replicas == replicas for _, obj in outcome.done)


def _get_tolerance(rules: HPAScalingRules | None, usual: float) -> float:
    tolerance = rules.tolerance if rules is not None else None
    return usual if tolerance is None else tolerance.nanos / 10**9


def _action(after: int, before: int) -> str:
    if after == before:
        return "none"
    return "scale_up" if after > before else "scale_down"
