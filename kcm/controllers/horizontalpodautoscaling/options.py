"""The tunables of the controller, under the names of upstream's flags."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from kcm.reconcile.contract import Options


class HorizontalPodAutoscalerOptions(Options):
    """Tunables of the HorizontalPodAutoscaler controller."""

    concurrent_horizontal_pod_autoscaler_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of horizontal pod autoscaler objects that are allowed to sync "
        "concurrently. Larger number = more responsive autoscalers, but more CPU load",
    )
    horizontal_pod_autoscaler_sync_period: timedelta = Field(
        default=timedelta(seconds=15),
        gt=timedelta(0),
        description="How often each autoscaler looks at its metrics",
    )
    horizontal_pod_autoscaler_downscale_stabilization: timedelta = Field(
        default=timedelta(minutes=5),
        ge=timedelta(0),
        description="How far back recommendations count before replicas are taken away, where "
        "the autoscaler itself does not say",
    )
    horizontal_pod_autoscaler_tolerance: float = Field(
        default=0.1,
        ge=0,
        description="How far a metric may be from its target, as a share of it, before the number "
        "of replicas changes",
    )
    horizontal_pod_autoscaler_cpu_initialization_period: timedelta = Field(
        default=timedelta(minutes=5),
        ge=timedelta(0),
        description="How long after a pod's start its CPU usage is left out while it is not "
        "ready, or was measured before it was",
    )
    horizontal_pod_autoscaler_initial_readiness_delay: timedelta = Field(
        default=timedelta(seconds=30),
        ge=timedelta(0),
        description="How long after a pod's start changes of its readiness count as its first "
        "getting ready",
    )
    hpa_configurable_tolerance: bool = Field(
        default=False,
        description="Feature gate HPAConfigurableTolerance (alpha): heed the tolerance that an "
        "autoscaler's behavior names",
    )
