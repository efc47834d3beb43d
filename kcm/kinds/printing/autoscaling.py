"""The columns of HorizontalPodAutoscalers, and of the metrics of nodes and pods.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33, and metrics-server 0.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api.autoscaling_v2 import (
    HorizontalPodAutoscaler,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
)
from kcm.api.metrics_v1beta1 import NodeMetrics, PodMetrics
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import Quantity
from kcm.kinds.printing.column import AGE, NAME, NONE, Column

_UNKNOWN = "<unknown>"
_MOST_SHOWN = 2
# The field of spec and status for each type of metric.
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "container_resource",
}


def _targets(hpa: HorizontalPodAutoscaler, _: datetime) -> str:
    specs, statuses = hpa.spec.metrics or [], hpa.status.current_metrics or []
    if not specs:
        return NONE
    shown = [
        _target(spec, statuses[index] if index < len(statuses) else MetricStatus())
        for index, spec in enumerate(specs)
    ]
    more = len(shown) - _MOST_SHOWN
    text = ", ".join(shown[:_MOST_SHOWN])
    return f"{text} + {more} more..." if more > 0 else text


def _target(spec: MetricSpec, status: MetricStatus) -> str:
    field = _SOURCES.get(spec.type)
    source = getattr(spec, field) if field else None
    if field is None or source is None:
        return "<unknown type>"
    current = getattr(status, field)
    text = _numbers(source.target, current.current if current is not None else None, spec.type)
    if spec.type in ("Resource", "ContainerResource"):
        return f"{source.name}: {text}"
    return text


def _numbers(target: MetricTarget, current: MetricValueStatus | None, type_: str) -> str:
    current = current or MetricValueStatus()
    if target.average_value is not None:
        average = " (avg)" if type_ in ("External", "Object") else ""
        return f"{_format_value(current.average_value)}/{target.average_value}{average}"
    if type_ in ("Resource", "ContainerResource"):
        wanted = target.average_utilization
        percentage = "<auto>" if wanted is None else f"{wanted}%"
        return f"{_format_value(current.average_utilization, '%')}/{percentage}"
    return f"{_format_value(current.value)}/{target.value}"


def _format_value(value: object, unit: str = "") -> str:
    return _UNKNOWN if value is None else f"{value}{unit}"


def _reference(hpa: HorizontalPodAutoscaler, _: datetime) -> str:
    target = hpa.spec.scale_target_ref
    return f"{target.kind}/{target.name}"


def _least(hpa: HorizontalPodAutoscaler, _: datetime) -> str:
    return "<unset>" if hpa.spec.min_replicas is None else str(hpa.spec.min_replicas)


def _use(title: str, resource: str) -> Column:
    def text(metrics: NodeMetrics | PodMetrics, _: datetime) -> str:
        if isinstance(metrics, NodeMetrics):
            return str(metrics.usage.get(resource, _NOTHING))
        return str(sum((c.usage.get(resource, _NOTHING) for c in metrics.containers), _NOTHING))

    return Column(title, text)


_NOTHING = Quantity(0)
_USE = (
    NAME,
    _use("CPU", "cpu"),
    _use("Memory", "memory"),
    Column("Window", lambda item, _: item.window),
)

COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    HorizontalPodAutoscaler: (
        NAME,
        Column("Reference", _reference),
        Column("Targets", _targets),
        Column("MinPods", _least),
        Column("MaxPods", lambda hpa, _: str(hpa.spec.max_replicas), number=True),
        Column("Replicas", lambda hpa, _: str(hpa.status.current_replicas or 0), number=True),
        AGE,
    ),
    NodeMetrics: _USE,
    PodMetrics: _USE,
}
