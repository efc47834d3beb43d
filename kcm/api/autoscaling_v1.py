"""autoscaling/v1: HorizontalPodAutoscaler, another served version of autoscaling/v2's.

Its spec knows one metric, the average CPU utilization. Everything else that v2 has is kept in
annotations, so that an object which is read and written in v1 loses nothing.

Source: staging/src/k8s.io/api/autoscaling/v1/types.go,
pkg/apis/autoscaling/{annotations,helpers}.go and pkg/apis/autoscaling/v1/conversion.go, Kubernetes
1.33.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import Field, ValidationError

from kcm.api import autoscaling_v2
from kcm.apimachinery.base import Int32, Int64, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time

API_VERSION = "autoscaling/v1"
DEFAULT_CPU_UTILIZATION = 80  # percent, where no metric is given

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = _PREFIX + "metrics"
CURRENT_METRICS = _PREFIX + "current-metrics"
CONDITIONS = _PREFIX + "conditions"
BEHAVIOR = _PREFIX + "behavior"
ANNOTATIONS = (METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR)
OF_STATUS = (CURRENT_METRICS, CONDITIONS)

Json = dict[str, Any]


class CrossVersionObjectReference(autoscaling_v2.CrossVersionObjectReference):
    """An object, by kind and name, in the namespace of the object that refers to it."""

    kubernetes_atomic: ClassVar[bool] = True


class HorizontalPodAutoscalerSpec(Model):
    """The workload to scale, the bounds of its replicas, and the wanted CPU utilization."""

    scale_target_ref: CrossVersionObjectReference = Field(
        default_factory=CrossVersionObjectReference
    )
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0
    target_cpu_utilization_percentage: Int32 | None = None


class HorizontalPodAutoscalerStatus(Model):
    """The replicas and the utilization that the autoscaler last observed, and its decision."""

    observed_generation: Int64 | None = None
    last_scale_time: Time | None = None
    current_replicas: Int32 = 0
    desired_replicas: Int32 = 0
    current_cpu_utilization_percentage: Int32 | None = None


class HorizontalPodAutoscaler(KubeObject):
    """Scales a workload so that the average CPU utilization of its pods stays near a target."""

    api_version: str = API_VERSION
    kind: str = "HorizontalPodAutoscaler"
    spec: HorizontalPodAutoscalerSpec = Field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = Field(default_factory=HorizontalPodAutoscalerStatus)


class AutoscalerConversion:
    """Converts HorizontalPodAutoscalers between autoscaling/v1 and the stored autoscaling/v2."""

    def from_stored(self, raw: bytes, resource: object) -> HorizontalPodAutoscaler:
        """Returns the autoscaler in v1 of the stored JSON in v2."""
        text = json.dumps(from_v2(json.loads(raw)))
        return HorizontalPodAutoscaler.model_validate_json(text, by_alias=True, by_name=False)

    def to_stored(self, obj: KubeObject) -> bytes:
        """Returns the JSON to store, which is that of autoscaling/v2."""
        # The resource that has this conversion is of v1.
        assert isinstance(obj, HorizontalPodAutoscaler)
        autoscaler = as_v2(obj)
        return type(autoscaler).__pydantic_serializer__.to_json(
            autoscaler, by_alias=True, exclude_none=True
        )


def as_v2(obj: HorizontalPodAutoscaler) -> autoscaling_v2.HorizontalPodAutoscaler:
    """Returns an autoscaler of v1 in v2."""
    body = to_v2(obj.model_dump(mode="json", by_alias=True, exclude_none=True))
    return autoscaling_v2.HorizontalPodAutoscaler.model_validate_json(
        json.dumps(body), by_alias=True, by_name=False
    )


# --- from v2


def from_v2(body: Mapping[str, Any]) -> Json:
    """Returns the JSON in v1 of an autoscaler's JSON in v2."""
    spec, status = dict(body.get("spec") or {}), dict(body.get("status") or {})
    metrics = spec.pop("metrics", None) or []
    current = status.pop("currentMetrics", None) or []
    kept = {
        METRICS: [_metric_from_v2(m) for m in metrics if _utilization(m, "target") is None],
        CURRENT_METRICS: [_status_from_v2(m) for m in current],
        CONDITIONS: status.pop("conditions", None),
        BEHAVIOR: _keys(spec.pop("behavior", None), str.upper),
    }
    targets = [_utilization(m, "target") for m in metrics if _is_cpu(m)]
    if targets and targets[0] is not None:
        spec["targetCPUUtilizationPercentage"] = targets[0]
    seen = [utilization for m in current if (utilization := _utilization(m, "current")) is not None]
    if seen:
        status["currentCPUUtilizationPercentage"] = seen[-1]
    extra = {name: _compact(value) for name, value in kept.items() if value}
    metadata = _with_annotations(body, _plain_annotations(body) | extra)
    return {**body, "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}


def _is_cpu(metric: Mapping[str, Any]) -> bool:
    return bool(
        metric.get("type") == "Resource" and metric.get("resource", {}).get("name") == "cpu"
    )


def _utilization(metric: Mapping[str, Any], part: str) -> int | None:
    """Returns the CPU utilization in `part` (`target` or `current`) of a metric of v2, in percent.

    Returns None for every metric that v1 has no field for.
    """
    if not _is_cpu(metric):
        return None
    utilization: int | None = metric["resource"].get(part, {}).get("averageUtilization")
    return utilization


def _metric_from_v2(metric: Mapping[str, Any]) -> Json:
    return _old_form(metric, "target", "target", {"object": "targetValue"})


def _status_from_v2(metric: Mapping[str, Any]) -> Json:
    return _old_form(metric, "current", "current", {"object": "currentValue"})


def _old_form(metric: Mapping[str, Any], part: str, prefix: str, always: Mapping[str, str]) -> Json:
    """Returns a metric of v2, or the status of one, in the form of v2beta1.

    That is the form that v1's annotations hold. `part` is where v2 has the numbers, `prefix` how
    v2beta1's names of them begin, and `always` has the field that v2beta1 cannot leave out, by the
    metric's type.
    """
    metric_in_v1: Json = {"type": metric.get("type", "")}
    for source_field, source in metric.items():
        if source_field == "type" or not isinstance(source, Mapping):
            continue
        values = source.get(part) or {}
        old = {k: v for k, v in source.items() if k not in (part, "metric", "describedObject")}
        if "metric" in source:
            old["metricName"] = source["metric"].get("name", "")
            old[_selector_field(source_field)] = source["metric"].get("selector")
        if "describedObject" in source:
            old["target"] = source["describedObject"]
        names = _old_names(source_field, prefix)
        old |= {names[k]: values.get(k) for k in ("value", "averageValue", "averageUtilization")
                if k in names}  # fmt: skip
        if source_field in always and old.get(always[source_field]) is None:
            old[always[source_field]] = "0"
        metric_in_v1[source_field] = {k: v for k, v in old.items() if v is not None}
    return metric_in_v1


def _selector_field(source_field: str) -> str:
    return "metricSelector" if source_field == "external" else "selector"


def _old_names(source_field: str, prefix: str) -> Mapping[str, str]:
    """Returns v2beta1's names for the numbers of a metric's target or status, by those of v2.

    `source_field` is the field of the metric's type, such as `pods`; `prefix` is `target` or
    `current`.
    """
    value, average = f"{prefix}Value", f"{prefix}AverageValue"
    if source_field == "object":
        return {"value": value, "averageValue": "averageValue"}
    if source_field == "pods":
        return {"averageValue": average}
    if source_field == "external":
        return {"value": value, "averageValue": average}
    return {"averageUtilization": f"{prefix}AverageUtilization", "averageValue": average}


# --- to v2


def to_v2(body: Mapping[str, Any]) -> Json:
    """Returns the JSON in v2 of an autoscaler's JSON in v1.

    An annotation that cannot be read counts as absent.
    """
    spec, status = dict(body.get("spec") or {}), dict(body.get("status") or {})
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    metrics = []
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        metrics.append(_cpu("target", {"type": "Utilization", "averageUtilization": target}))
    metrics += [_metric_to_v2(m) for m in _read(annotations, METRICS, list)]
    default = {"type": "Utilization", "averageUtilization": DEFAULT_CPU_UTILIZATION}
    spec["metrics"] = metrics or [_cpu("target", default)]
    if behavior := _read(annotations, BEHAVIOR, dict):
        spec["behavior"] = _keys(behavior, str.lower)
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)  # v2 leaves a zero out
    seen = status.pop("currentCPUUtilizationPercentage", None)
    current = [_status_to_v2(m) for m in _read(annotations, CURRENT_METRICS, list)]
    if not current and seen is not None:
        current = [_cpu("current", {"averageUtilization": seen})]
    if current:
        status["currentMetrics"] = current
    if conditions := _read(annotations, CONDITIONS, list):
        status["conditions"] = conditions
    metadata = _with_annotations(body, _plain_annotations(body))
    api_version = "autoscaling/v2"
    return {**body, "apiVersion": api_version, "metadata": metadata, "spec": spec, "status": status}


def _cpu(part: str, values: Mapping[str, Any]) -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", part: values}}


def _metric_to_v2(metric: Json) -> Json:
    return _new_form(metric, "target", "target")


def _status_to_v2(metric: Json) -> Json:
    return _new_form(metric, "current", "current")


def _new_form(metric: Mapping[str, Any], part: str, prefix: str) -> Json:
    """Returns a metric of v2beta1, or the status of one, in the form of v2.

    It is the inverse of `_old_form`.
    """
    metric_in_v2: Json = {"type": metric.get("type", "")}
    for source_field, source in metric.items():
        if source_field == "type" or not isinstance(source, Mapping):
            continue
        names = _old_names(source_field, prefix)
        numbers = {new: source[old] for new, old in names.items() if old in source}
        if "averageValue" in numbers and numbers.get("value") == "0":
            del numbers["value"]  # v1 cannot leave it out
        gone = {*names.values(), "metricName", _selector_field(source_field)}
        new = {k: v for k, v in source.items() if k not in gone}
        if source_field == "object" and "target" in new:
            new["describedObject"] = new.pop("target")
        if "metricName" in source:
            new["metric"] = {"name": source["metricName"]}
            if source.get(_selector_field(source_field)) is not None:
                new["metric"]["selector"] = source[_selector_field(source_field)]
        new[part] = numbers if part == "current" else {"type": _type_of(numbers), **numbers}
        metric_in_v2[source_field] = new
    return metric_in_v2


def _type_of(numbers: Mapping[str, Any]) -> str:
    if "averageUtilization" in numbers:
        return "Utilization"
    return "AverageValue" if "averageValue" in numbers else "Value"


def _read(annotations: Mapping[str, str], name: str, json_type: type[Any]) -> Any:
    """Returns the value of an annotation that holds JSON of type `json_type`.

    It is empty if the annotation is absent, or holds what v2 cannot read.
    """
    try:
        value = json.loads(annotations.get(name) or "null")
    except (ValueError, RecursionError):
        return json_type()
    if not isinstance(value, json_type):
        return json_type()
    if json_type is list and not all(isinstance(item, dict) for item in value):
        return []
    return value if _fits(name, value) else json_type()


_SPEC: type[Model] = autoscaling_v2.HorizontalPodAutoscalerSpec
_STATUS: type[Model] = autoscaling_v2.HorizontalPodAutoscalerStatus
# By annotation: the model and field of v2 that it stands for, and what converts an item of it.
_KEPT: Mapping[str, tuple[type[Model], str, Callable[[Json], Json] | None]] = {
    METRICS: (_SPEC, "metrics", _metric_to_v2),
    CURRENT_METRICS: (_STATUS, "currentMetrics", _status_to_v2),
    CONDITIONS: (_STATUS, "conditions", None),
    BEHAVIOR: (_SPEC, "behavior", None),
}


def _fits(name: str, annotated: Any) -> bool:
    """Reports whether v2 can read the value of an annotation."""
    model, field, convert = _KEPT[name]
    value = [convert(item) for item in annotated] if convert is not None else annotated
    if name == BEHAVIOR:
        value = _keys(annotated, str.lower)
    try:
        model.model_validate_json(json.dumps({field: value}), by_alias=True, by_name=False)
    except ValidationError:
        return False
    return True


# --- annotations


def _keys(value: Any, letter: Callable[[str], str]) -> Any:
    """Returns JSON with `letter` applied to the first letter of every field name.

    Upstream's annotation holds a behavior under Go's field names, such as `ScaleUp`.
    """
    if isinstance(value, dict):
        return {letter(name[:1]) + name[1:]: _keys(inner, letter) for name, inner in value.items()}
    if isinstance(value, list):
        return [_keys(item, letter) for item in value]
    return value


def _plain_annotations(body: Mapping[str, Any]) -> dict[str, str]:
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    return {name: text for name, text in annotations.items() if name not in ANNOTATIONS}


def _with_annotations(body: Mapping[str, Any], annotations: Mapping[str, str]) -> Json:
    metadata = {k: v for k, v in (body.get("metadata") or {}).items() if k != "annotations"}
    return metadata | ({"annotations": dict(annotations)} if annotations else {})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
