"""Validation of HorizontalPodAutoscalers.

Source: pkg/apis/autoscaling/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kcm.api import autoscaling_v1
from kcm.api.autoscaling_v1 import as_v2
from kcm.api.autoscaling_v2 import (
    ContainerResourceMetricSource,
    CrossVersionObjectReference,
    ExternalMetricSource,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
    ObjectMetricSource,
    PodsMetricSource,
    ResourceMetricSource,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    not_negative,
    not_supported,
    required,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec.resources import resource_name

MOST_SECONDS = 3600  # the longest stabilization window
MOST_PERIOD = 1800  # seconds, the longest period of a policy
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")
_EITHER = "must set either a target raw value or a target utilization"
_BOTH = "may not set both a target raw value and a target utilization"


def create(hpa: HorizontalPodAutoscaler) -> Faults:
    faults = meta.metadata(hpa, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _spec(hpa.spec, least=1) + _target_version(hpa.spec.scale_target_ref)


def update(new: HorizontalPodAutoscaler, old: HorizontalPodAutoscaler) -> Faults:
    least = 0 if old.spec.min_replicas == 0 else 1
    faults = meta.metadata_update(new, old) + _spec(new.spec, least)
    target, before = new.spec.scale_target_ref, old.spec.scale_target_ref
    if (target.api_version, target.kind) != (before.api_version, before.kind):
        faults += _target_version(target)
    return faults


def status_update(new: HorizontalPodAutoscaler, old: HorizontalPodAutoscaler) -> Faults:
    return [
        *meta.metadata_update(new, old),
        *not_negative("status.currentReplicas", new.status.current_replicas),
        *not_negative("status.desiredReplicas", new.status.desired_replicas),
    ]


def create_v1(hpa: autoscaling_v1.HorizontalPodAutoscaler) -> Faults:
    return create(as_v2(hpa))


def update_v1(
    new: autoscaling_v1.HorizontalPodAutoscaler, old: autoscaling_v1.HorizontalPodAutoscaler
) -> Faults:
    return update(as_v2(new), as_v2(old))


def status_update_v1(
    new: autoscaling_v1.HorizontalPodAutoscaler, old: autoscaling_v1.HorizontalPodAutoscaler
) -> Faults:
    return status_update(as_v2(new), as_v2(old))


# --- spec


def _spec(spec: HorizontalPodAutoscalerSpec, least: int) -> Faults:
    faults: Faults = []
    low, high = spec.min_replicas, spec.max_replicas
    if low is not None and low < least:
        detail = f"must be greater than or equal to {least}"
        faults.append(invalid("spec.minReplicas", low, detail))
    if high < 1:
        faults.append(invalid("spec.maxReplicas", high, "must be greater than 0"))
    if low is not None and high < low:
        detail = "must be greater than or equal to `minReplicas`"
        faults.append(invalid("spec.maxReplicas", high, detail))
    faults += _reference(spec.scale_target_ref, "spec.scaleTargetRef")
    faults += _metrics(spec.metrics or [], low)
    if spec.behavior is not None:
        faults += _rules(spec.behavior.scale_up, "spec.behavior.scaleUp")
        faults += _rules(spec.behavior.scale_down, "spec.behavior.scaleDown")
    return faults


def _reference(reference: CrossVersionObjectReference, path: str) -> Faults:
    faults: Faults = []
    for field, text in (("kind", reference.kind), ("name", reference.name)):
        if text:
            faults += invalid_all(f"{path}.{field}", text, names.path_segment_faults(text))
        else:
            faults.append(required(f"{path}.{field}"))
    return faults


def _target_version(target: CrossVersionObjectReference) -> Faults:
    """Checks that the apiVersion of what is scaled names an API group."""
    path, version = "spec.scaleTargetRef.apiVersion", target.api_version or ""
    if version.count("/") > 1:
        return [invalid(path, version, f"unexpected GroupVersion string: {version}")]
    if "/" in version or target.kind == "ReplicationController":
        return []
    return [invalid(path, version, "apiVersion must specify API group")]


def _rules(rules: HPAScalingRules | None, path: str) -> Faults:
    if rules is None:
        return []
    faults: Faults = []
    window, policy = rules.stabilization_window_seconds, rules.select_policy
    if window is not None and window < 0:
        detail = "must be greater than or equal to zero"
        faults.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    if window is not None and window > MOST_SECONDS:
        detail = f"must be less than or equal to {MOST_SECONDS}"
        faults.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    if policy is not None and policy not in _SELECT_POLICIES:
        faults.append(not_supported(f"{path}.selectPolicy", policy, _SELECT_POLICIES))
    if not rules.policies:
        faults.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, one in enumerate(rules.policies or ()):
        faults += _policy(one, f"{path}.policies[{index}]")
    if rules.tolerance is not None and rules.tolerance.sign() < 0:
        detail = "must be greater than or equal to 0"
        faults.append(invalid(f"{path}.tolerance", str(rules.tolerance), detail))
    return faults


def _policy(policy: HPAScalingPolicy, path: str) -> Faults:
    faults: Faults = []
    if policy.type not in _POLICY_TYPES:
        faults.append(not_supported(f"{path}.type", policy.type, _POLICY_TYPES))
    for field, number in (("value", policy.value), ("periodSeconds", policy.period_seconds)):
        if number <= 0:
            faults.append(invalid(f"{path}.{field}", number, "must be greater than zero"))
    if policy.period_seconds > MOST_PERIOD:
        detail = f"must be less than or equal to {MOST_PERIOD}"
        faults.append(invalid(f"{path}.periodSeconds", policy.period_seconds, detail))
    return faults


# --- metrics


def _metrics(metrics: list[MetricSpec], min_replicas: int | None) -> Faults:
    faults: Faults = []
    for index, metric in enumerate(metrics):
        faults += _metric(metric, f"spec.metrics[{index}]")
    if min_replicas == 0 and not any(m.type in ("Object", "External") for m in metrics):
        detail = (
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas"
        )
        faults.append(forbidden("spec.metrics", detail))
    return faults


def _metric(metric: MetricSpec, path: str) -> Faults:
    faults: Faults = []
    if not metric.type:
        faults.append(required(f"{path}.type", "must specify a metric source type"))
    if metric.type not in _SOURCES:
        faults.append(not_supported(f"{path}.type", metric.type, sorted(_SOURCES)))
    present = []
    for field, attribute, check in _SOURCES.values():
        source = getattr(metric, attribute)
        if source is not None:
            present.append(field)
            if len(present) == 1:
                faults += check(source, f"{path}.{field}")
    expected = _SOURCES[metric.type][0] if metric.type in _SOURCES else ""
    if expected and expected not in present:
        detail = "must populate information for the given metric source"
        faults.append(required(f"{path}.{expected}", detail))
    if len(present) != 1:
        detail = "must populate the given metric source only"
        faults += [forbidden(f"{path}.{field}", detail) for field in present if field != expected]
    return faults


def _object(source: ObjectMetricSource, path: str) -> Faults:
    faults = _reference(source.described_object, f"{path}.describedObject")
    faults += _identifier(source.metric, f"{path}.metric")
    faults += _target(source.target, f"{path}.target")
    if source.target.value is None and source.target.average_value is None:
        detail = "must set either a target value or averageValue"
        faults.append(required(f"{path}.target.averageValue", detail))
    return faults


def _external(source: ExternalMetricSource, path: str) -> Faults:
    target = source.target
    faults = _identifier(source.metric, f"{path}.metric") + _target(target, f"{path}.target")
    if target.value is None and target.average_value is None:
        detail = "must set either a target value for metric or a per-pod target"
        faults.append(required(f"{path}.target.averageValue", detail))
    if target.value is not None and target.average_value is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        faults.append(forbidden(f"{path}.target.value", detail))
    return faults


def _pods(source: PodsMetricSource, path: str) -> Faults:
    faults = _identifier(source.metric, f"{path}.metric") + _target(source.target, f"{path}.target")
    if source.target.average_value is None:
        detail = "must specify a positive target averageValue"
        faults.append(required(f"{path}.target.averageValue", detail))
    return faults


def _resource(source: ResourceMetricSource, path: str) -> Faults:
    faults: Faults = []
    if not source.name:
        faults.append(required(f"{path}.name", "must specify a resource name"))
    return faults + _resource_target(source.target, f"{path}.target")


def _container(source: ContainerResourceMetricSource, path: str) -> Faults:
    faults: Faults = []
    if not source.name:
        faults.append(required(f"{path}.name", "must specify a resource name"))
    else:
        faults += resource_name(source.name, f"{path}.name")
    if not source.container:
        faults.append(required(f"{path}.container", "must specify a container"))
    else:
        complaints = names.label_faults(source.container)
        faults += invalid_all(f"{path}.container", source.container, complaints)
    return faults + _resource_target(source.target, f"{path}.target")


def _resource_target(target: MetricTarget, path: str) -> Faults:
    faults = _target(target, path)
    if target.average_utilization is None and target.average_value is None:
        faults.append(required(f"{path}.averageUtilization", _EITHER))
    if target.average_utilization is not None and target.average_value is not None:
        faults.append(forbidden(f"{path}.averageValue", _BOTH))
    return faults


def _target(target: MetricTarget, path: str) -> Faults:
    faults: Faults = []
    if not target.type:
        faults.append(required(f"{path}.type", "must specify a metric target type"))
    if target.type not in _TARGET_TYPES:
        detail = "must be either Utilization, Value, or AverageValue"
        faults.append(invalid(f"{path}.type", target.type, detail))
    for field, amount in (("value", target.value), ("averageValue", target.average_value)):
        if amount is not None and amount.sign() != 1:
            faults.append(invalid(f"{path}.{field}", str(amount), "must be positive"))
    wanted = target.average_utilization
    if wanted is not None and wanted < 1:
        faults.append(invalid(f"{path}.averageUtilization", wanted, "must be greater than 0"))
    return faults


def _identifier(metric: MetricIdentifier, path: str) -> Faults:
    if not metric.name:
        return [required(f"{path}.name", "must specify a metric name")]
    return invalid_all(f"{path}.name", metric.name, names.path_segment_faults(metric.name))


# By type of the metric: the field in JSON, the attribute, and the function that checks it.
_SOURCES: dict[str, tuple[str, str, Callable[[Any, str], Faults]]] = {
    "Object": ("object", "object", _object),
    "External": ("external", "external", _external),
    "Pods": ("pods", "pods", _pods),
    "Resource": ("resource", "resource", _resource),
    "ContainerResource": ("containerResource", "container_resource", _container),
}
