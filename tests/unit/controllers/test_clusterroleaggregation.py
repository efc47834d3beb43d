"""Tests which rules an aggregated ClusterRole gets from other roles."""

from __future__ import annotations

from kcm.api.rbac_v1 import AggregationRule, ClusterRole, PolicyRule
from kcm.apimachinery.meta_v1 import LabelSelector, ObjectMeta
from kcm.controllers.clusterroleaggregation import ClusterRoleAggregationController
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Patch
from kcm.testing.views import FakeView


def rule(resource: str) -> PolicyRule:
    return PolicyRule(verbs=["get"], api_groups=[""], resources=[resource])


def role(name: str, *resources: str, of: str = "", to: str = "") -> ClusterRole:
    """Returns a role. With `of` it aggregates roles that have this label, with `to` it has this
    label.
    """
    selector = LabelSelector(match_labels={"to": of})
    return ClusterRole(
        metadata=ObjectMeta(name=name, labels={"to": to} if to else None),
        rules=[rule(resource) for resource in resources] or None,
        aggregation_rule=AggregationRule(cluster_role_selectors=[selector]) if of else None,
    )


def resources(*roles: ClusterRole) -> list[str] | None:
    """Returns the resources that the first role allows after a sync; None when nothing is
    written.
    """
    controller = ClusterRoleAggregationController()
    plan = controller.reconcile(roles[0].key, FakeView(*roles, controller=controller))
    if not plan.writes:
        return None
    (write,) = plan.writes
    assert isinstance(write, Patch)
    new = write.change(write.old)
    assert isinstance(new, ClusterRole)
    return [(obj.resources or [""])[0] for obj in new.rules or ()]


def test_the_rules_of_the_parts_are_taken_over_in_the_order_of_names_and_once() -> None:
    parts = [role("z", "pods", "nodes", to="x"), role("a", "secrets", "pods", to="x")]
    assert resources(role("all", of="x"), *parts, role("other", "leases")) == [
        "secrets", "pods", "nodes",
    ]  # fmt: skip


def test_rules_of_its_own_are_replaced() -> None:
    assert resources(role("all", "leases", of="x"), role("a", "pods", to="x")) == ["pods"]
    assert resources(role("all", "leases", of="x")) == []


def test_nothing_is_written_when_nothing_changes_or_is_aggregated() -> None:
    assert resources(role("all", "pods", of="x"), role("a", "pods", to="x")) is None
    assert resources(role("plain", "pods"), role("a", "nodes", to="x")) is None


def test_an_aggregated_role_may_be_aggregated_again_and_circles_end() -> None:
    admin, edit = role("admin", of="admin", to="view"), role("edit", of="edit", to="admin")
    view = role("view", of="view", to="edit")
    leaf = role("leaf", "pods", to="view")
    assert resources(admin, edit, view, leaf) == ["pods"]


def test_a_change_of_any_role_touches_the_aggregated_roles() -> None:
    controller = ClusterRoleAggregationController()
    (watch,) = controller.watches()
    part = role("part", "pods", to="x")
    view = FakeView(role("all", of="x"), part, role("plain"), controller=controller)
    assert list(watch.keys(Change(None, part), view)) == ["all"]
    assert controller.reconcile("gone", view).writes == []
