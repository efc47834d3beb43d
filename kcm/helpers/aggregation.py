"""Cluster roles that are made of others.

Source: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kcm.api.rbac_v1 import ClusterRole, PolicyRule
from kcm.apimachinery.labels import Selector


def aggregated(role: ClusterRole, others: Iterable[ClusterRole]) -> list[PolicyRule]:
    """A cluster role's rules: its own, or with an aggregation rule those of the roles that it
    selects, in the order of their names and each once.

    A selected role that is made of others itself gives what they do, so no chain
    of roles has to be worked out in order; upstream reaches the same by repetition.
    """
    if role.aggregation_rule is None:
        return list(role.rules or ())
    by_name = {other.name: other for other in sorted(others, key=lambda other: other.name)}
    found: dict[str, PolicyRule] = {}
    for part in _parts(role, by_name, set()):
        for rule in part.rules or ():
            found.setdefault(rule.model_dump_json(exclude_none=True), rule)
    return list(found.values())


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
