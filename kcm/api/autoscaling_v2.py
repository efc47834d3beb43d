"""autoscaling/v2: HorizontalPodAutoscaler.

Source: staging/src/k8s.io/api/autoscaling/v2/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kcm.apimachinery.base import Int32, Int64, MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector
from kcm.apimachinery.quantity import Quantity
from kcm.apimachinery.times import Time


class CrossVersionObjectReference(Model):
    """An object of the same namespace, of whatever version."""

    kubernetes_atomic: ClassVar[bool] = True

    kind: str = ""
    name: str = ""
    api_version: str | None = None


class MetricIdentifier(Model):
    """Which metric, and which of its series."""

    name: str = ""
    selector: LabelSelector | None = None


class MetricTarget(Model):
    """What a metric is to be."""

    type: str = ""  # Utilization, Value or AverageValue
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int32 | None = None  # percent of the requests


class MetricValueStatus(Model):
    """What a metric was."""

    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int32 | None = None


class ObjectMetricSource(Model):
    """A metric of one object."""

    described_object: CrossVersionObjectReference = Field(
        default_factory=CrossVersionObjectReference
    )
    target: MetricTarget = Field(default_factory=MetricTarget)
    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)


class PodsMetricSource(Model):
    """A metric that every pod has, averaged."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    target: MetricTarget = Field(default_factory=MetricTarget)


class ResourceMetricSource(Model):
    """What the pods use of cpu or memory."""

    name: str = ""
    target: MetricTarget = Field(default_factory=MetricTarget)


class ContainerResourceMetricSource(Model):
    """What one container of each pod uses."""

    name: str = ""
    target: MetricTarget = Field(default_factory=MetricTarget)
    container: str = ""


class ExternalMetricSource(Model):
    """A metric of nothing in the cluster."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    target: MetricTarget = Field(default_factory=MetricTarget)


class MetricSpec(Model):
    """One metric to scale by; the type says which of the sources is set."""

    type: str = ""  # Object, Pods, Resource, ContainerResource or External
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None


class HPAScalingPolicy(Model):
    """How much may change within a period."""

    type: str = ""  # Pods or Percent
    value: Int32 = 0
    period_seconds: Int32 = 0


class HPAScalingRules(Model):
    """How fast the number of replicas may move in one direction."""

    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None  # Max, Min or Disabled
    policies: list[HPAScalingPolicy] | None = None
    tolerance: Quantity | None = None  # behind the gate HPAConfigurableTolerance


class HorizontalPodAutoscalerBehavior(Model):
    """How fast to scale up and down."""

    scale_up: HPAScalingRules | None = None
    scale_down: HPAScalingRules | None = None


class HorizontalPodAutoscalerSpec(Model):
    """What to scale, between which bounds, and by which metrics."""

    scale_target_ref: CrossVersionObjectReference = Field(
        default_factory=CrossVersionObjectReference
    )
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0
    metrics: list[MetricSpec] | None = None
    behavior: HorizontalPodAutoscalerBehavior | None = None


class ObjectMetricStatus(Model):
    """What an object's metric was."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    described_object: CrossVersionObjectReference = Field(
        default_factory=CrossVersionObjectReference
    )


class PodsMetricStatus(Model):
    """What the pods' metric was on average."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)


class ResourceMetricStatus(Model):
    """What the pods used on average."""

    name: str = ""
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)


class ContainerResourceMetricStatus(Model):
    """What the container used on average."""

    name: str = ""
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    container: str = ""


class ExternalMetricStatus(Model):
    """What the external metric was."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)


class MetricStatus(Model):
    """What one metric was when it was last looked at; empty when that failed."""

    type: str = ""
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class HorizontalPodAutoscalerCondition(Model):
    """Whether an autoscaler can scale, does, and is limited."""

    type: str = ""  # AbleToScale, ScalingActive or ScalingLimited
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class HorizontalPodAutoscalerStatus(Model):
    """What the autoscaler last saw and decided."""

    observed_generation: Int64 | None = None
    last_scale_time: Time | None = None
    current_replicas: Int32 | None = None
    desired_replicas: Int32 = 0
    current_metrics: list[MetricStatus] | None = None
    conditions: Annotated[list[HorizontalPodAutoscalerCondition] | None, MergeKey("type")] = None


class HorizontalPodAutoscaler(KubeObject):
    """Keeps as many replicas of a workload as its metrics ask for."""

    api_version: str = "autoscaling/v2"
    kind: str = "HorizontalPodAutoscaler"
    spec: HorizontalPodAutoscalerSpec = Field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = Field(default_factory=HorizontalPodAutoscalerStatus)
