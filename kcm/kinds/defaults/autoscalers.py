"""Defaults of HorizontalPodAutoscalers.

Source: pkg/apis/autoscaling/{v1,v2}/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api import autoscaling_v1 as v1
from kcm.api.autoscaling_v2 import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults

_PERIOD = 15  # seconds
_UP = (
    HPAScalingPolicy(type="Pods", value=4, period_seconds=_PERIOD),
    HPAScalingPolicy(type="Percent", value=100, period_seconds=_PERIOD),
)
_DOWN = (HPAScalingPolicy(type="Percent", value=100, period_seconds=_PERIOD),)


def autoscaler(hpa: HorizontalPodAutoscaler) -> HorizontalPodAutoscaler:
    spec = fill_defaults(hpa.spec, min_replicas=1)
    if not spec.metrics:
        spec = spec.replace(metrics=[_cpu()])
    if spec.behavior is not None:
        spec = change_fields(spec, behavior=behavior(spec.behavior))
    return change_fields(hpa, spec=spec)


def _cpu() -> MetricSpec:
    target = MetricTarget(type="Utilization", average_utilization=v1.DEFAULT_CPU_UTILIZATION)
    return MetricSpec(type="Resource", resource=ResourceMetricSource(name="cpu", target=target))


def behavior(given: HorizontalPodAutoscalerBehavior) -> HorizontalPodAutoscalerBehavior:
    """Returns the behavior with defaults for all fields of its scaling rules but one.

    The stabilization window for scaling down stays unset: the controller's flag is its default.
    """
    up, down = given.scale_up or HPAScalingRules(), given.scale_down or HPAScalingRules()
    up = fill_defaults(up, stabilization_window_seconds=0, select_policy="Max", policies=list(_UP))
    down = fill_defaults(down, select_policy="Max", policies=list(_DOWN))
    return change_fields(given, scale_up=up, scale_down=down)


def autoscaler_v1(hpa: v1.HorizontalPodAutoscaler) -> v1.HorizontalPodAutoscaler:
    spec = fill_defaults(hpa.spec, min_replicas=1)
    if v1.METRICS not in hpa.annotations:  # upstream's conversion fills in this default
        spec = fill_defaults(spec, target_cpu_utilization_percentage=v1.DEFAULT_CPU_UTILIZATION)
    return change_fields(hpa, spec=spec)
