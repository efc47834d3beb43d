"""Aggregated cluster roles, whose rules are those of other cluster roles.

Source: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kcm.api.rbac_v1 import ClusterRole, PolicyRule
from kcm.apimachinery.labels import Selector


def aggregate_rules(role: ClusterRole, others: Iterable[ClusterRole]) -> list[PolicyRule]:
    """Returns the rules of a cluster role.

    With an aggregation rule, they are the rules of the roles that it selects, by order of their
    names, each rule once. A selected role that is aggregated itself contributes the rules that it
    aggregates, so the order in which roles are computed does not matter. Upstream reaches the same
    result by repetition.
    """
    if role.aggregation_rule is None:
        return list(role.rules or ())
    by_name = {other.name: other for other in sorted(others, key=lambda other: other.name)}
    rules: dict[str, PolicyRule] = {}
    for part in _parts(role, by_name, set()):
        for rule in part.rules or ():
            rules.setdefault(rule.model_dump_json(exclude_none=True), rule)
    return list(rules.values())


def _parts(
    role: ClusterRole, others: Mapping[str, ClusterRole], seen: set[str]
) -> Iterator[ClusterRole]:
    if role.name in seen:
        return
    seen.add(role.name)
    if role.aggregation_rule is None:
        yield role
        return
    selectors = role.aggregation_rule.cluster_role_selectors or ()
    chosen = [Selector.from_label_selector(selector) for selector in selectors]
    for other in others.values():
        if any(selector.matches(other.labels) for selector in chosen):
            yield from _parts(other, others, seen)
