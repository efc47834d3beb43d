"""ClusterRoleAggregation: writes the rules of aggregated cluster roles into the roles, so that
people see them.

The API server computes these rules by itself (`kcm.apiserver.auth.rbac`). Permissions do not depend
on this controller.

Source: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.rbac_v1 import ClusterRole, PolicyRule
from kcm.helpers.aggregation import aggregate_rules
from kcm.sdk import Change, Controller, Patch, Plan, View, Watch


class ClusterRoleAggregationController(Controller):
    """Sets `rules` of the cluster roles that have an aggregation rule. A key is a cluster role."""

    name = "clusterrole-aggregation-controller"
    short_name = "clusterroleaggregation"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(ClusterRole, _list_aggregated_roles),)

    def reconcile(self, key: str, view: View) -> Plan:
        lister = view.lister(ClusterRole)
        role = lister.find(key)
        if role is None or role.aggregation_rule is None or role.deleting:
            return Plan()
        rules = aggregate_rules(role, lister.list())
        if rules == (role.rules or []):
            return Plan()
        return Plan().then(Patch(role, lambda obj: _with_rules(obj, rules)))


def _list_aggregated_roles(change: Change, view: View) -> Iterable[str]:
    """Returns the keys of all aggregated roles, since any role may be part of any of them."""
    roles = view.lister(ClusterRole).list()
    return [role.key for role in roles if role.aggregation_rule is not None]


def _with_rules(obj: ClusterRole, rules: list[PolicyRule]) -> ClusterRole:
    return obj if obj.aggregation_rule is None else obj.replace(rules=rules)
