"""Compares the default ClusterRoles with those of Kubernetes 1.36.

`tests/unit/api/published_roles.txt` has these, written by `tools/published_api.py`.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from kcm.api import codec
from kcm.apiserver.auth.controller_policy import controller_role_bindings, controller_roles
from kcm.apiserver.auth.policy import cluster_role_bindings, cluster_roles, node_rules

_ROOT = Path(__file__).parents[4]
_TOOL = runpy.run_path(str(_ROOT / "tools" / "published_api.py"))
# Users of metrics-server get these by its own manifest.
_METRICS = {
    ("system:aggregate-to-view", verb, "metrics.k8s.io", resource, "")
    for verb in ("get", "list", "watch")
    for resource in ("nodes", "pods")
}
# Roles for kinds that kcm serves, and a default server does not.
_BEHIND_GATES = {
    "system:controller:kube-apiserver-serving-clustertrustbundle-publisher",
    "system:controller:storage-version-migrator-controller",
}


def list_permissions(lines: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yields each single permission: role, verb, group, resource and name, or role, verb, path."""
    for line in lines:
        role, *parts = line.split()
        parts = [*parts, ""] if len(parts) == 3 and parts[1] != "-" else parts
        for permission in product(*(part.split(",") for part in parts)):
            yield (role, *permission)


def test_cluster_roles_permit_what_upstreams_permit() -> None:
    roles = {"items": [codec.to_dict(role) for role in (*cluster_roles(), *controller_roles())]}
    published = (_ROOT / "tests" / "unit" / "api" / "published_roles.txt").read_text("utf-8")
    kcm = set(list_permissions(_TOOL["rule_lines"](roles)))
    upstream = set(list_permissions(published.splitlines()))
    more = kcm - upstream
    assert {permission for permission in more if permission[0] not in _BEHIND_GATES} == _METRICS
    assert {permission[0] for permission in more} >= _BEHIND_GATES
    assert upstream - kcm == set()


def test_the_node_authorizer_does_not_allow_what_it_must_judge_by_object() -> None:
    resources = {name for rule in node_rules() for name in rule.resources or ()}
    assert not resources & {"resourceclaims", "resourceslices", "serviceaccounts"}


def test_a_binding_may_be_for_a_service_account() -> None:
    bindings = {one.name: one for one in cluster_role_bindings()}
    subjects = bindings["system:kube-dns"].subjects or []
    assert [(one.kind, one.namespace, one.name, one.api_group) for one in subjects] == [
        ("ServiceAccount", "kube-system", "kube-dns", None)
    ]


def test_each_controller_has_an_account_with_its_role() -> None:
    bound = {one.role_ref.name: one.subjects or [] for one in controller_role_bindings()}
    assert bound.keys() == {role.name for role in controller_roles()}
    assert [
        (one.kind, one.namespace, one.name) for one in bound["system:controller:job-controller"]
    ] == [("ServiceAccount", "kube-system", "job-controller")]
