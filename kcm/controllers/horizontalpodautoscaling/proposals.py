"""Reads one metric of an autoscaler, and computes how many replicas it asks for.

Source: computeReplicasForMetric and computeStatusFor*Metric in
pkg/controller/podautoscaler/horizontal.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from kcm import errors
from kcm.api.autoscaling_v2 import (
    ContainerResourceMetricStatus,
    CrossVersionObjectReference,
    ExternalMetricStatus,
    MetricIdentifier,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ObjectMetricStatus,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from kcm.api.core_v1 import Pod
from kcm.api.scheme import Kinds, Resource
from kcm.apimachinery.labels import Selector, format_selector
from kcm.apimachinery.quantity import Quantity
from kcm.controllers.horizontalpodautoscaling.calculator import Calculator, MetricError, PodMetric
from kcm.sdk import Metrics
from kcm.store.resource_metrics.answers import Value, not_found
from kcm.store.resource_metrics.usage import Measured


@dataclass(frozen=True)
class Proposal:
    """The replicas that a metric asks for, the metric's description for messages, and its
    status.
    """

    replicas: int
    name: str
    status: MetricStatus


class ProposalError(Exception):
    """Raised when a metric cannot be read or used.

    `reason` is a CamelCase reason for conditions and Events, `why` the cause, and `summary` the
    cause with the metric's name.
    """

    def __init__(self, reason: str, why: str, summary: str, *, of_spec: bool = False) -> None:
        super().__init__(why)
        self.reason = reason
        self.why = why
        self.summary = summary
        self.of_spec = of_spec  # whether the autoscaler's spec is the cause


@dataclass(frozen=True)
class MetricReader:
    """Reads the metrics of one autoscaler and computes a proposal from each."""

    namespace: str
    metrics: Metrics
    calculator: Calculator
    present: int  # the replicas that the target reports
    served: Kinds

    def propose(self, spec: MetricSpec) -> Proposal:
        """Returns the proposal of a metric. Raises ProposalError."""
        if spec.type not in _WAYS:
            why = f'unknown metric source type "{spec.type}"'
            raise ProposalError("InvalidMetricSourceType", why, why, of_spec=True)
        way, summary = _WAYS[spec.type]
        try:
            return way(self, spec)
        except (MetricError, errors.KcmError) as error:
            about = f"failed to get {summary(spec)} value: {error}"
            why = str(error.__cause__ if isinstance(error, _SummarizedError) else error)
            raise ProposalError(f"FailedGet{spec.type}Metric", why, about) from error

    # --- resources

    def _resource(self, spec: MetricSpec) -> Proposal:
        source = spec.resource
        assert source is not None
        replicas, current, name = self._use(source.name, "", source.target)
        status = ResourceMetricStatus(name=source.name, current=current)
        return Proposal(replicas, name, MetricStatus(type=spec.type, resource=status))

    def _container(self, spec: MetricSpec) -> Proposal:
        source = spec.container_resource
        assert source is not None
        replicas, current, name = self._use(source.name, source.container, source.target)
        status = ContainerResourceMetricStatus(
            name=source.name, container=source.container, current=current
        )
        return Proposal(replicas, name, MetricStatus(type=spec.type, container_resource=status))

    def _use(
        self, resource: str, container: str, target: MetricTarget
    ) -> tuple[int, MetricValueStatus, str]:
        if target.average_value is not None:
            with _ErrorPrefix(f"failed to get {resource} usage"):
                pod_metrics = self._pod_metrics(resource, container)
                wanted = target.average_value.milli_value()
                replicas, average = self.calculator.by_average(wanted, resource, pod_metrics)
            return replicas, _average(average), f"{resource} resource"
        if target.average_utilization is None:
            raise MetricError(
                "invalid resource metric source: neither an average utilization target nor an "
                "average value (usage) target was set"
            )
        with _ErrorPrefix(f"failed to get {resource} utilization"):
            pod_metrics = self._pod_metrics(resource, container)
            utilization = self.calculator.by_utilization(
                target.average_utilization, resource, container, pod_metrics
            )
        of = f"{resource} container resource" if container else f"{resource} resource"
        current = _average(utilization.average).replace(average_utilization=utilization.percent)
        return utilization.replicas, current, f"{of} utilization (percentage of request)"

    def _pod_metrics(self, resource: str, container: str) -> dict[str, PodMetric]:
        with _ErrorPrefix(f"unable to get metrics for resource {resource}"):
            measured = self.metrics.pods(self.calculator.pods)
            values = {}
            for pod in self.calculator.pods:
                usage = measured.get(pod.key)
                amount = None if usage is None else _amount(usage, pod, resource, container)
                if usage is not None and amount is not None:
                    window = timedelta(seconds=usage.window)
                    values[pod.name] = PodMetric(amount.milli_value(), usage.moment, window)
            if not values:
                raise MetricError("no metrics returned from resource metrics API")
            return values

    # --- metrics of pods

    def _pods(self, spec: MetricSpec) -> Proposal:
        source = spec.pods
        assert source is not None
        target = source.target.average_value
        if target is None:
            raise MetricError("invalid pods metric source: no average value target was set")
        name, selector = source.metric.name, _selector(source.metric)
        with _ErrorPrefix(f"unable to get metric {name}"):
            values = self.metrics.of_pods(name, self.calculator.pods, selector)
            if not values:
                raise MetricError("no metrics returned from custom metrics API")
        pod_metrics = {
            key.rpartition("/")[2]: _build_pod_metric(value) for key, value in values.items()
        }
        replicas, average = self.calculator.by_average(target.milli_value(), "", pod_metrics)
        status = PodsMetricStatus(metric=source.metric, current=_average(average))
        return Proposal(replicas, f"pods metric {name}", MetricStatus(type=spec.type, pods=status))

    # --- metrics of objects, and external ones

    def _object(self, spec: MetricSpec) -> Proposal:
        source = spec.object
        assert source is not None
        target, name = source.target, source.metric.name
        status = ObjectMetricStatus(metric=source.metric, described_object=source.described_object)
        if target.type == "Value" and target.value is not None:
            value = self._value_of(source.described_object, source.metric)
            replicas = self.calculator.by_value(target.value.milli_value(), value)
            status = status.replace(current=_value(value))
            label = f"{source.described_object.kind} metric {name}"
        elif target.type == "AverageValue" and target.average_value is not None:
            with _ErrorPrefix(f"failed to get {name} object metric", in_summary=True):
                value = self._value_of(source.described_object, source.metric)
            wanted = target.average_value.milli_value()
            replicas, average = self.calculator.by_share(self.present, wanted, value)
            status = status.replace(current=_average(average))
            label = f"external metric {name}({format_selector(source.metric.selector)})"
        else:
            raise MetricError(
                "invalid object metric source: neither a value target nor an average value "
                "target was set"
            )
        return Proposal(replicas, label, MetricStatus(type=spec.type, object=status))

    def _value_of(self, about: CrossVersionObjectReference, metric: MetricIdentifier) -> int:
        where = f"{about.kind} on {self.namespace} {about.name}"
        with _ErrorPrefix(f"unable to get metric {metric.name}: {where}", joint="/"):
            resource = _find_resource(about, self.served)
            key = f"{self.namespace}/{about.name}" if resource.namespaced else about.name
            values = self.metrics.of_objects(resource.name, metric.name, [key], _selector(metric))
            if key not in values:
                missing = not_found(metric.name, resource.name, about.name)
                raise MetricError(f"unable to fetch metrics from custom metrics API: {missing}")
            return values[key].value.milli_value()

    def _external(self, spec: MetricSpec) -> Proposal:
        source = spec.external
        assert source is not None
        target, name = source.target, source.metric.name
        if target.average_value is not None:
            with _ErrorPrefix(f"failed to get {name} external metric", in_summary=True):
                total = self._external_value(source.metric)
            wanted = target.average_value.milli_value()
            replicas, average = self.calculator.by_share(self.present, wanted, total)
            current = _average(average)
        elif target.value is not None:
            with _ErrorPrefix(f"failed to get external metric {name}", in_summary=True):
                total = self._external_value(source.metric)
                replicas = self.calculator.by_value(target.value.milli_value(), total)
            current = _value(total)
        else:
            raise MetricError(
                "invalid external metric source: neither a value target nor an average value "
                "target was set"
            )
        label = f"external metric {name}({format_selector(source.metric.selector)})"
        status = ExternalMetricStatus(metric=source.metric, current=current)
        return Proposal(replicas, label, MetricStatus(type=spec.type, external=status))

    def _external_value(self, metric: MetricIdentifier) -> int:
        where = f"{self.namespace}/{metric.name}/{format_selector(metric.selector)}"
        with _ErrorPrefix(f"unable to get external metric {where}"):
            series = self.metrics.external(self.namespace, metric.name, _selector(metric))
            if not series:
                raise MetricError("no metrics returned from external metrics API")
            return sum(value.value.milli_value() for _, value in series)


# By the type of a metric: the method that computes it, and its name in error messages.
_WAYS: Mapping[
    str, tuple[Callable[[MetricReader, MetricSpec], Proposal], Callable[[MetricSpec], str]]
]
_WAYS = {
    "Resource": (
        MetricReader._resource,
        lambda spec: f"{spec.resource.name if spec.resource else ''} resource metric",
    ),
    "ContainerResource": (
        MetricReader._container,
        lambda spec: (
            f"{spec.container_resource.container if spec.container_resource else ''} "
            "container metric"
        ),
    ),
    "Pods": (MetricReader._pods, lambda _: "pods metric"),
    "Object": (MetricReader._object, lambda _: "object metric"),
    "External": (
        MetricReader._external,
        lambda spec: f"{spec.external.metric.name if spec.external else ''} external metric",
    ),
}


class _SummarizedError(MetricError):
    """Raised with a message for the summary of all metrics; its cause has that for conditions."""


class _ErrorPrefix:
    """A context manager that raises errors as MetricError; `tried` and `joint` precede the
    message, or only that of the summary.
    """

    def __init__(self, tried: str, joint: str = ": ", *, in_summary: bool = False) -> None:
        self._tried = tried + joint
        self._type = _SummarizedError if in_summary else MetricError

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MetricError | errors.KcmError):
            raise self._type(f"{self._tried}{error}") from error


def _amount(measured: Measured, pod: Pod, resource: str, container: str) -> Quantity | None:
    """Returns the usage of a pod, or of a container of it; None if it is not known.

    Raises MetricError if there is no usage of the container at all.
    """
    if container:
        used = measured.containers.get(container)
        if used is None:
            raise MetricError(
                f"container {container} not present in metrics for pod {pod.namespace}/{pod.name}"
            )
        return used.get(resource)
    if any(resource not in used for used in measured.containers.values()):
        return None
    return measured.usage.get(resource)


def _find_resource(about: CrossVersionObjectReference, served: Kinds) -> Resource:
    """Returns the resource of a kind, in any version. Raises UnknownKind."""
    group = (about.api_version or "").rpartition("/")[0]
    kinds: Sequence[Resource] = [r for r in served.resources() if r.kind == about.kind]
    resource = next((r for r in kinds if r.group == group), None)
    if resource is None:
        raise errors.UnknownKind(f'no matches for kind "{about.kind}" in group "{group}"')
    return resource


def _selector(metric: MetricIdentifier) -> Selector:
    """Returns the selector of the metric's series; without one it selects all. Raises
    BadRequest.
    """
    if metric.selector is None:
        return Selector.everything()
    return Selector.from_label_selector(metric.selector)


def _build_pod_metric(value: Value) -> PodMetric:
    return PodMetric(value.value.milli_value(), value.moment, timedelta(seconds=value.window))


def _average(milli: int) -> MetricValueStatus:
    return MetricValueStatus(average_value=Quantity.of_milli(milli))


def _value(milli: int) -> MetricValueStatus:
    return MetricValueStatus(value=Quantity.of_milli(milli))
