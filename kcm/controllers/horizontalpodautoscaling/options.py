"""The options of the HorizontalPodAutoscaler controller, named like upstream's flags."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from kcm.sdk import Options


class HorizontalPodAutoscalerOptions(Options):
    """The options of the HorizontalPodAutoscaler controller."""

    concurrent_horizontal_pod_autoscaler_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of horizontal pod autoscaler objects that are allowed to sync "
        "concurrently. Larger number = more responsive autoscalers, but more CPU load",
    )
    horizontal_pod_autoscaler_sync_period: timedelta = Field(
        default=timedelta(seconds=15),
        gt=timedelta(0),
        description="The period for syncing the number of pods of each autoscaler's target",
    )
    horizontal_pod_autoscaler_downscale_stabilization: timedelta = Field(
        default=timedelta(minutes=5),
        ge=timedelta(0),
        description="The stabilization window for scaling down, for autoscalers whose behavior "
        "has none: replicas are removed only down to the highest recommendation in it",
    )
    horizontal_pod_autoscaler_tolerance: float = Field(
        default=0.1,
        ge=0,
        description="How far a metric may be from its target, as a share of the target, without "
        "a change of the number of replicas",
    )
    horizontal_pod_autoscaler_cpu_initialization_period: timedelta = Field(
        default=timedelta(minutes=5),
        ge=timedelta(0),
        description="The time after a pod's start in which its CPU usage is ignored if the pod is "
        "not ready, or if the usage was measured before it became ready",
    )
    horizontal_pod_autoscaler_initial_readiness_delay: timedelta = Field(
        default=timedelta(seconds=30),
        ge=timedelta(0),
        description="The time after a pod's start in which changes of its readiness count as "
        "its initial readiness",
    )
    hpa_configurable_tolerance: bool = Field(
        default=True,
        description="Feature gate HPAConfigurableTolerance (beta): use the tolerance in an "
        "autoscaler's behavior",
    )
