"""HorizontalPodAutoscaler: scales targets to the replicas that their metrics ask for.

Departures: a new or changed autoscaler is synced at once, and recommendations and changes are
remembered over a restart. A metric that cannot be read is reported in conditions and Events and is
read again after the sync period, without back-off.

Source: pkg/controller/podautoscaler/horizontal.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.autoscaling_v2 import HorizontalPodAutoscaler
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.horizontalpodautoscaling.counts import METRICS
from kcm.controllers.horizontalpodautoscaling.options import HorizontalPodAutoscalerOptions
from kcm.controllers.horizontalpodautoscaling.sync import Sync
from kcm.sdk import Change, Controller, Plan, View, Watch


class HorizontalPodAutoscalerController(Controller):
    """Syncs autoscalers when they change and after each sync period. A key is an autoscaler."""

    name = "horizontal-pod-autoscaler-controller"
    short_name = "horizontalpodautoscaling"
    group = "workloads"
    options_type = HorizontalPodAutoscalerOptions
    options: HorizontalPodAutoscalerOptions
    reads = (Pod,)
    reads_scales = True
    remembers = True
    metrics = METRICS

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(HorizontalPodAutoscaler, changed_keys),)

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_horizontal_pod_autoscaler_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        hpa = view.lister(HorizontalPodAutoscaler).find(key)
        if hpa is None:
            return Plan(state={})
        return Sync(hpa, view, self.options).plan()


def changed_keys(change: Change, view: View) -> Iterable[str]:
    """Returns the autoscaler's own key, or nothing if only its status or metadata changed."""
    return () if _is_same(change.old, change.new) else (change.object.key,)


def _is_same(old: KubeObject | None, new: KubeObject | None) -> bool:
    if not isinstance(old, HorizontalPodAutoscaler):
        return False
    return isinstance(new, HorizontalPodAutoscaler) and (old.spec, old.uid) == (new.spec, new.uid)
