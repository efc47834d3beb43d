"""Changes the pods of a node that is not ready.

Source: MarkPodsNotReady, DeletePods and SetPodTerminationReason in
pkg/controller/util/node/controller_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.core_v1 import Pod
from kcm.apimachinery.ownership import controller_of
from kcm.helpers.pods import condition_of, is_ready

NODE_LOST = "NodeLost"  # the status.reason of pods that direct eviction deletes


def mark_not_ready(now: datetime, obj: Pod) -> Pod:
    """Returns the pod with Ready=False, or unchanged if it is not ready."""
    if not is_ready(obj):
        return obj
    stamp = now.replace(microsecond=0)
    ready = condition_of(obj.status, "Ready")
    conditions = [
        c.replace(status="False", last_transition_time=stamp) if c is ready else c
        for c in obj.status.conditions or ()
    ]
    return obj.with_status(obj.status.replace(conditions=conditions))


def mark_lost(node: str, obj: Pod) -> Pod:
    """Returns the pod with a status that explains its deletion: its node is unresponsive."""
    if obj.status.reason == NODE_LOST:
        return obj
    message = f"Node {node} which was running pod {obj.name} is unresponsive"
    return obj.with_status(obj.status.replace(reason=NODE_LOST, message=message))


def is_evictable(pod: Pod) -> bool:
    """Reports whether direct eviction deletes the pod.

    Pods of DaemonSets are left out, as they would be created on the same node again.
    """
    owner = controller_of(pod)
    daemon = owner is not None and owner.kind == "DaemonSet"
    return not daemon and not pod.deleting
