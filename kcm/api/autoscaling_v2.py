"""autoscaling/v2: HorizontalPodAutoscaler.

Source: staging/src/k8s.io/api/autoscaling/v2/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import Int32, Int64, MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, Time
from kcm.apimachinery.quantity import Quantity


class CrossVersionObjectReference(Model):
    """The kind and name of an object in the same namespace, in any API version."""

    kind: str = ""
    name: str = ""
    api_version: str | None = None


class MetricIdentifier(Model):
    """The name of a metric, and a selector for its series."""

    name: str = ""
    selector: LabelSelector | None = None


class MetricTarget(Model):
    """The value that a metric should have: a value, an average per pod or a utilization."""

    type: str = ""  # Utilization, Value or AverageValue
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int32 | None = None  # percent of the requests


class MetricValueStatus(Model):
    """The current value of a metric."""

    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int32 | None = None


class ObjectMetricSource(Model):
    """A metric of one object of the cluster, such as the requests that an Ingress receives."""

    described_object: CrossVersionObjectReference = Field(
        default_factory=CrossVersionObjectReference
    )
    target: MetricTarget = Field(default_factory=MetricTarget)
    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)


class PodsMetricSource(Model):
    """A metric that every pod of the target has. Its average over the pods is compared."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    target: MetricTarget = Field(default_factory=MetricTarget)


class ResourceMetricSource(Model):
    """The CPU or memory that the pods of the target use on average."""

    name: str = ""
    target: MetricTarget = Field(default_factory=MetricTarget)


class ContainerResourceMetricSource(Model):
    """The CPU or memory that one container of each pod of the target uses on average."""

    name: str = ""
    target: MetricTarget = Field(default_factory=MetricTarget)
    container: str = ""


class ExternalMetricSource(Model):
    """A metric of something outside the cluster, such as the length of a queue."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    target: MetricTarget = Field(default_factory=MetricTarget)


class MetricSpec(Model):
    """A metric by which the workload is scaled.

    `type` says which one of the other fields is set.
    """

    type: str = ""  # Object, Pods, Resource, ContainerResource or External
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None


class HPAScalingPolicy(Model):
    """How many replicas, or what percentage of them, may be added or removed within a period."""

    type: str = ""  # Pods or Percent
    value: Int32 = 0
    period_seconds: Int32 = 0


class HPAScalingRules(Model):
    """How fast the number of replicas may change in one direction."""

    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None  # Max, Min or Disabled
    policies: list[HPAScalingPolicy] | None = None
    tolerance: Quantity | None = None  # behind the gate HPAConfigurableTolerance


class HorizontalPodAutoscalerBehavior(Model):
    """How fast the number of replicas may rise and fall."""

    scale_up: HPAScalingRules | None = None
    scale_down: HPAScalingRules | None = None


class HorizontalPodAutoscalerSpec(Model):
    """The workload to scale, the bounds of its replicas, and the metrics that decide."""

    scale_target_ref: CrossVersionObjectReference = Field(
        default_factory=CrossVersionObjectReference
    )
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0
    metrics: list[MetricSpec] | None = None
    behavior: HorizontalPodAutoscalerBehavior | None = None


class ObjectMetricStatus(Model):
    """The current value of a metric of one object."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    described_object: CrossVersionObjectReference = Field(
        default_factory=CrossVersionObjectReference
    )


class PodsMetricStatus(Model):
    """The current average of a metric that every pod has."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)


class ResourceMetricStatus(Model):
    """The CPU or memory that the pods currently use on average."""

    name: str = ""
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)


class ContainerResourceMetricStatus(Model):
    """The CPU or memory that one container of each pod currently uses on average."""

    name: str = ""
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    container: str = ""


class ExternalMetricStatus(Model):
    """The current value of a metric of something outside the cluster."""

    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)


class MetricStatus(Model):
    """The last observed value of one metric of the spec.

    All fields are empty if it could not be read.
    """

    type: str = ""
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class HorizontalPodAutoscalerCondition(Model):
    """One aspect of an autoscaler's state: whether it can scale, does so, and is limited."""

    type: str = ""  # AbleToScale, ScalingActive or ScalingLimited
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class HorizontalPodAutoscalerStatus(Model):
    """The replicas and metrics that the autoscaler last observed, and its decision."""

    observed_generation: Int64 | None = None
    last_scale_time: Time | None = None
    current_replicas: Int32 | None = None
    desired_replicas: Int32 = 0
    current_metrics: list[MetricStatus] | None = None
    conditions: Annotated[list[HorizontalPodAutoscalerCondition] | None, MergeKey("type")] = None


class HorizontalPodAutoscaler(KubeObject):
    """Scales a workload between two bounds, so that its metrics stay near their targets."""

    api_version: str = "autoscaling/v2"
    kind: str = "HorizontalPodAutoscaler"
    spec: HorizontalPodAutoscalerSpec = Field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = Field(default_factory=HorizontalPodAutoscalerStatus)
