"""Sets the conditions of an autoscaler.

Source: setConditionInList in pkg/controller/podautoscaler/horizontal.go, Kubernetes 1.36.
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
    """Returns the status with a condition. The transition time changes with its status only."""
    conditions = list(status.conditions or ())
    place = next((index for index, c in enumerate(conditions) if c.type == condition.type), None)
    if place is None:
        conditions.append(condition.replace(last_transition_time=now.replace(microsecond=0)))
        return status.replace(conditions=conditions)
    same = conditions[place].status == condition.status
    since = conditions[place].last_transition_time if same else None
    conditions[place] = condition.replace(last_transition_time=since or now.replace(microsecond=0))
    return status.replace(conditions=conditions)
