"""The conditions of an autoscaler.

Source: setConditionInList in pkg/controller/podautoscaler/horizontal.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.autoscaling_v2 import (
    HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerStatus,
)

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"


def with_condition(
    status: HorizontalPodAutoscalerStatus,
    condition: HorizontalPodAutoscalerCondition,
    now: datetime,
) -> HorizontalPodAutoscalerStatus:
    """The status with a condition; its time is kept while its word is the same."""
    found = list(status.conditions or ())
    known = next((index for index, c in enumerate(found) if c.type == condition.type), None)
    if known is None:
        found.append(condition.replace(last_transition_time=now.replace(microsecond=0)))
        return status.replace(conditions=found)
    same = found[known].status == condition.status
    since = found[known].last_transition_time if same else None
    found[known] = condition.replace(last_transition_time=since or now.replace(microsecond=0))
    return status.replace(conditions=found)
