"""The controller's own counters, under upstream's names.

Source: pkg/controller/podautoscaler/monitor/metrics.go, Kubernetes 1.33. Left out: durations, since
those of syncs are measured for all controllers.
"""

from __future__ import annotations

from kcm.reconcile.counters import Counter

_SUBSYSTEM = "horizontal_pod_autoscaler_controller"
RECONCILIATIONS = Counter(
    f"{_SUBSYSTEM}_reconciliations",
    "Number of looks at an autoscaler, by what was done and whether that failed",
    ("action", "error"),
)
COMPUTATIONS = Counter(
    f"{_SUBSYSTEM}_metric_computation",
    "Number of metrics that were worked out, by what they asked for",
    ("action", "error", "metric_type"),
)
METRICS = (RECONCILIATIONS, COMPUTATIONS)
