"""The controller's own metrics, under upstream's names.

Source: pkg/controller/podautoscaler/monitor/metrics.go, Kubernetes 1.33. Durations are left out,
since the durations of syncs are measured for all controllers.
"""

from __future__ import annotations

from kcm.sdk import Counter

_SUBSYSTEM = "horizontal_pod_autoscaler_controller"
RECONCILIATIONS = Counter(
    f"{_SUBSYSTEM}_reconciliations",
    "Number of syncs of autoscalers, by the action taken and the kind of error",
    ("action", "error"),
)
COMPUTATIONS = Counter(
    f"{_SUBSYSTEM}_metric_computation",
    "Number of computed metrics, by the action they asked for, the kind of error and their type",
    ("action", "error", "metric_type"),
)
METRICS = (RECONCILIATIONS, COMPUTATIONS)
