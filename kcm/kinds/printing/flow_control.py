"""The columns of FlowSchemas and PriorityLevelConfigurations.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api.flowcontrol_v1 import FlowSchema, PriorityLevelConfiguration, QueuingConfiguration
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.column import AGE, NAME, NONE, Column


def _method(schema: FlowSchema, _: datetime) -> str:
    method = schema.spec.distinguisher_method
    return method.type if method is not None else NONE


def _is_level_missing(schema: FlowSchema, _: datetime) -> str:
    conditions = schema.status.conditions or ()
    return next((one.status or "" for one in conditions if one.type == "Dangling"), "?")


def _shares(level: PriorityLevelConfiguration, _: datetime) -> str:
    limits = level.spec.limited or level.spec.exempt
    shares = limits.nominal_concurrency_shares if limits is not None else None
    return NONE if shares is None else str(shares)


def _queuing(level: PriorityLevelConfiguration) -> QueuingConfiguration:
    limited = level.spec.limited
    queuing = limited.limit_response.queuing if limited is not None else None
    return queuing or QueuingConfiguration()


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)


COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    FlowSchema: (
        NAME,
        Column("PriorityLevel", lambda item, _: item.spec.priority_level_configuration.name),
        Column("MatchingPrecedence", lambda item, _: str(item.spec.matching_precedence or 0)),
        Column("DistinguisherMethod", _method),
        AGE,
        Column("MissingPL", _is_level_missing),
    ),
    PriorityLevelConfiguration: (
        NAME,
        Column("Type", lambda item, _: item.spec.type),
        Column("NominalConcurrencyShares", _shares),
        Column("Queues", lambda item, _: _number(_queuing(item).queues)),
        Column("HandSize", lambda item, _: _number(_queuing(item).hand_size)),
        Column("QueueLengthLimit", lambda item, _: _number(_queuing(item).queue_length_limit)),
        AGE,
    ),
}
