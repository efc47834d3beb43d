"""All comparisons of kcm with upstream's cases."""

from __future__ import annotations

from collections.abc import Sequence

from tests.upstream import extensions, nodes, objects, values, volumes
from tests.upstream.accepted import Compare

COMPARISONS: Sequence[Compare] = (
    objects.compare_verdicts,
    objects.compare_defaults,
    objects.compare_stored,
    nodes.compare_node_authorizer,
    nodes.compare_node_restriction,
    values.compare_strategic_merge,
    values.compare_quantities,
    values.compare_selectors,
    volumes.compare_binder,
    extensions.compare_definitions,
    extensions.compare_rules,
)
