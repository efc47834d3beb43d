"""Computes how many replicas a metric asks for. Amounts are in thousandths of the metric's unit.

Source: pkg/controller/podautoscaler/replica_calculator.go and
pkg/controller/podautoscaler/metrics/utilization.go, Kubernetes 1.36. Numbers have no limit of 32 or
64 bits here; the autoscaler's maxReplicas bounds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kcm.api.core_v1 import Container, Pod
from kcm.api.pods.resources import list_pod_level, requests_of
from kcm.helpers.pods import condition_of, is_ready, is_sidecar

CPU = "cpu"
_NO_PODS = "no pods returned by selector while calculating replica count"


class MetricError(Exception):
    """Raised when no number of replicas can be computed from a metric; the message says why."""


@dataclass(frozen=True)
class PodMetric:
    """One pod's value of a metric in thousandths, measured at `moment` over the time `window`."""

    milli: int
    moment: datetime
    window: timedelta = timedelta(0)


@dataclass(frozen=True)
class Tolerances:
    """How far the usage may be from its target without scaling, as shares of the target."""

    down: float
    up: float

    def holds(self, ratio: float) -> bool:
        """Reports whether the ratio of usage to target is near enough to 1 that nothing is
        scaled.
        """
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True)
class CalculatorRules:
    """The tolerances, and the times after a pod's start in which its CPU usage may be ignored."""

    tolerances: Tolerances
    cpu_initialization: timedelta
    readiness_delay: timedelta
    now: datetime


@dataclass
class Groups:
    """The names of the pods, grouped by how their values are used, and the number of ready ones.

    Pods that are `missing` have no value. Those that are `ignored` are being deleted or have
    failed.
    """

    ready: int = 0
    unready: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)


Use = Callable[[Mapping[str, int]], float]
"""Returns the ratio of usage to target for the amounts of pods, which are keyed by pod name."""


@dataclass(frozen=True)
class Utilization:
    """The replicas for a utilization target, the usage in percent of the requests, and its
    average.
    """

    replicas: int
    percent: int
    average: int


@dataclass(frozen=True)
class Calculator:
    """Computes replicas for a target with `replicas` in its spec, from the metrics of its pods."""

    replicas: int
    pods: Sequence[Pod]
    rules: CalculatorRules

    def by_utilization(
        self, target: int, resource: str, container: str, metrics: Mapping[str, PodMetric]
    ) -> Utilization:
        """Returns the replicas with which the pods would use `target` percent of their requests.

        With `container`, only that container of each pod counts. `metrics` are keyed by pod name.
        Raises MetricError.
        """
        groups = group_pods(self.pods, metrics, resource, self.rules)
        counted = _count_values(metrics, groups)
        requests = {pod.name: request_of(pod, resource, container) for pod in self.pods}

        def use(amounts: Mapping[str, int]) -> float:
            return _percent(amounts, requests)[0] / target

        percent, average = _percent(counted, requests)
        fallback = max(100, target)
        full = {name: requests[name] * fallback // 100 for name in groups.missing}
        return Utilization(self._compute_replicas(use, counted, groups, full), percent, average)

    def by_average(
        self, target: int, resource: str, metrics: Mapping[str, PodMetric]
    ) -> tuple[int, int]:
        """Returns the replicas with which the pods would use `target` on average, and the average
        now.

        `resource` is "" for a metric other than a resource. `metrics` are keyed by pod name. Raises
        MetricError.
        """
        groups = group_pods(self.pods, metrics, resource, self.rules)
        counted = _count_values(metrics, groups)

        def use(amounts: Mapping[str, int]) -> float:
            return _average(amounts) / target

        full = dict.fromkeys(groups.missing, target)
        return self._compute_replicas(use, counted, groups, full), _average(counted)

    def by_value(self, target: int, value: int) -> int:
        """Returns the replicas that would bring a value to `target`.

        The value is expected to fall in proportion as replicas are added. Raises MetricError.
        """
        ratio = value / target
        if self.replicas == 0:
            return math.ceil(ratio)  # at least one replica for any value above 0
        if self.rules.tolerances.holds(ratio):
            return self.replicas
        if not self.pods:
            raise MetricError(f"unable to calculate ready pods: {_NO_PODS}")
        running = (pod for pod in self.pods if pod.status.phase == "Running")
        return math.ceil(ratio * sum(1 for pod in running if is_ready(pod)))

    def by_share(self, present: int, target: int, value: int) -> tuple[int, int]:
        """Returns the replicas whose equal shares of a value would be `target`, and the share now.

        `present` is the number of replicas that the target reports.
        """
        if present == 0:
            return math.ceil(value / target), value
        within = self.rules.tolerances.holds(value / (target * present))
        wanted = present if within else math.ceil(value / target)
        return wanted, math.ceil(value / present)

    def _compute_replicas(
        self, use: Use, counted: Mapping[str, int], groups: Groups, full: Mapping[str, int]
    ) -> int:
        """Returns the replicas for a usage.

        Where values are missing, the number changes less than it otherwise would, or not at all:
        when scaling down, pods without a value count with the amounts in `full`; when scaling up,
        as idle.
        """
        ratio, near = use(counted), self.rules.tolerances.holds
        up_with_unready = bool(groups.unready) and ratio > 1.0
        if not up_with_unready and not groups.missing:
            return self.replicas if near(ratio) else math.ceil(ratio * groups.ready)
        amounts = dict(counted)
        if ratio < 1.0:
            amounts |= full
        elif ratio > 1.0:
            amounts |= dict.fromkeys(groups.missing, 0)
        if up_with_unready:
            amounts |= dict.fromkeys(groups.unready, 0)
        careful = use(amounts)
        if near(careful) or (ratio < 1.0 < careful) or (careful < 1.0 < ratio):
            return self.replicas
        wanted = math.ceil(careful * len(amounts))
        turned = wanted > self.replicas if careful < 1.0 else wanted < self.replicas
        return self.replicas if turned else wanted


def group_pods(
    pods: Sequence[Pod], metrics: Mapping[str, PodMetric], resource: str, rules: CalculatorRules
) -> Groups:
    """Returns the pods by how their values of a metric are used. Raises MetricError."""
    if not pods:
        raise MetricError(_NO_PODS)
    groups = Groups()
    for pod in pods:
        metric = metrics.get(pod.name)
        if pod.deleting or pod.status.phase == "Failed":
            groups.ignored.add(pod.name)
        elif pod.status.phase == "Pending":
            groups.unready.add(pod.name)
        elif metric is None:
            groups.missing.add(pod.name)
        elif resource == CPU and _is_unready(pod, metric, rules):
            groups.unready.add(pod.name)
        else:
            groups.ready += 1
    return groups


def _is_unready(pod: Pod, metric: PodMetric, rules: CalculatorRules) -> bool:
    """Reports whether a CPU value is from a starting pod, so that it does not show the usual
    load.
    """
    condition, start = condition_of(pod.status, "Ready"), pod.status.start_time
    if condition is None or start is None:
        return True
    changed = condition.last_transition_time or start
    if start + rules.cpu_initialization > rules.now:
        return condition.status == "False" or metric.moment < changed + metric.window
    return condition.status == "False" and start + rules.readiness_delay > changed


def _count_values(metrics: Mapping[str, PodMetric], groups: Groups) -> dict[str, int]:
    left_out = groups.ignored | groups.unready
    counted = {name: f.milli for name, f in metrics.items() if name not in left_out}
    if not counted:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    return counted


def _percent(amounts: Mapping[str, int], requests: Mapping[str, int]) -> tuple[int, int]:
    """Returns the usage in whole percent of the requests, and the average amount."""
    pairs = [(amount, requests[name]) for name, amount in amounts.items() if name in requests]
    requested = sum(request for _, request in pairs)
    if not requested:
        raise MetricError("no metrics returned matched known pods")
    used = sum(amount for amount, _ in pairs)
    return used * 100 // requested, used // len(pairs)


def _average(amounts: Mapping[str, int]) -> int:
    return sum(amounts.values()) // len(amounts)


def request_of(pod: Pod, resource: str, container: str) -> int:
    """Returns the request of the whole pod if it has any, of one container if it is named, or else
    of all containers, sidecars included.

    Raises MetricError if the pod or a container has none, or there is no such container.
    """
    if not container and list_pod_level(pod.spec, "requests"):
        whole = requests_of(pod.spec).get(resource)
        if whole is None:
            raise MetricError(f"missing pod-level request for {resource} in Pod {pod.name}")
        return whole.milli_value()
    return _sum_requests(pod, resource, container)


def _sum_requests(pod: Pod, resource: str, container: str) -> int:
    sidecars = [c for c in pod.spec.init_containers or () if is_sidecar(c)]
    every: list[Container] = [*pod.spec.containers, *sidecars]
    counted = [spec for spec in every if container in ("", spec.name)]
    if not counted:
        raise MetricError(f"container {container} not found in Pod {pod.name}")
    total = 0
    for spec in counted:
        amount = (spec.resources.requests or {}).get(resource)
        if amount is None:
            raise MetricError(
                f"missing request for {resource} in container {spec.name} of Pod {pod.name}"
            )
        total += amount.milli_value()
    return total
