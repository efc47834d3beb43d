"""Defaults of FlowSchemas and PriorityLevelConfigurations.

Source: pkg/apis/flowcontrol/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.flowcontrol_v1 import (
    ExemptPriorityLevelConfiguration,
    FlowSchema,
    LimitedPriorityLevelConfiguration,
    PriorityLevelConfiguration,
)
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults


def flow_schema(obj: FlowSchema) -> FlowSchema:
    # As upstream, whose field is no pointer, 0 counts as absent.
    if obj.spec.matching_precedence:
        return obj
    return change_fields(obj, spec=change_fields(obj.spec, matching_precedence=1000))


def priority_level(obj: PriorityLevelConfiguration) -> PriorityLevelConfiguration:
    spec = change_fields(
        obj.spec,
        limited=obj.spec.limited and _limited(obj.spec.limited),
        exempt=obj.spec.exempt and _exempt(obj.spec.exempt),
    )
    return change_fields(obj, spec=spec)


def _exempt(level: ExemptPriorityLevelConfiguration) -> ExemptPriorityLevelConfiguration:
    return fill_defaults(level, nominal_concurrency_shares=0, lendable_percent=0)


def _limited(level: LimitedPriorityLevelConfiguration) -> LimitedPriorityLevelConfiguration:
    level = fill_defaults(level, nominal_concurrency_shares=30, lendable_percent=0)
    response = level.limit_response
    queuing = response.queuing
    if queuing is None:
        return level
    queuing = change_fields(
        queuing,
        queues=queuing.queues or 64,
        hand_size=queuing.hand_size or 8,
        queue_length_limit=queuing.queue_length_limit or 50,
    )
    return change_fields(level, limit_response=change_fields(response, queuing=queuing))
