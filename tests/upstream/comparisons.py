"""All comparisons of kcm with upstream's cases."""

from __future__ import annotations

from collections.abc import Mapping

from tests.upstream import (
    autoscaling,
    controllers,
    extensions,
    nodes,
    objects,
    scheduling,
    values,
    volumes,
)
from tests.upstream.accepted import Compare

COMPARISONS: Mapping[Compare, tuple[str, ...]] = {
    objects.compare_verdicts: ("validation: verdicts", "validation: fields"),
    objects.compare_defaults: ("defaults",),
    objects.compare_stored: ("stored",),
    nodes.compare_authorizer: ("authorizer",),
    nodes.compare_approvals: ("approvals",),
    nodes.compare_node_authorizer: ("node authorizer: decisions", "node authorizer: reasons"),
    nodes.compare_node_restriction: ("node restriction: decisions", "node restriction: words"),
    values.compare_strategic_merge: ("strategic merge",),
    values.compare_quantities: ("quantities",),
    values.compare_selectors: ("selectors",),
    volumes.compare_binder: ("volume binder",),
    autoscaling.compare_autoscaling: tuple(
        f"autoscaling: {table}" for table in ("calculator", "groups", "requests", "limits", "syncs")
    ),
    scheduling.compare_scheduling: ("scheduling: filters", "scheduling: scores"),
    scheduling.compare_scheduling_volumes: ("scheduling: volumes",),
    scheduling.compare_preemption: ("preemption",),
    controllers.compare_controllers: ("controllers",),
    extensions.compare_definitions: ("definitions: verdicts", "definitions: fields"),
    extensions.compare_rules: ("rules",),
    extensions.compare_costs: ("costs",),
    extensions.compare_pruning: ("pruning",),
    extensions.compare_defaulting: ("defaulting",),
}
"""The functions that compare, and the groups of cases whose differences each returns."""
