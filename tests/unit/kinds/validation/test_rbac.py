"""Roles and bindings."""

from typing import Any

import pytest

from kcm.api.rbac_v1 import GROUP
from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new

ROLES, CLUSTER_ROLES = f"roles.{GROUP}", f"clusterroles.{GROUP}"
BINDINGS, CLUSTER_BINDINGS = f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"


def test_roles_may_have_colons_in_their_names() -> None:
    assert validate_new(CLUSTER_ROLES, metadata={"name": "system:node"}) == []
    [message] = validate_new(CLUSTER_ROLES, metadata={"name": "a/b"})
    assert message == "metadata.name: Invalid value: \"a/b\": may not contain '/'"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (
            {},
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: "
                "resource rules must supply at least one api group",
                "rules[0].resources: Required value: "
                "resource rules must supply at least one resource",
            ],
        ),
        (
            {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]},
            [
                'rules[0].nonResourceURLs: Invalid value: []string{"/x"}: '
                "namespaced rules cannot apply to non-resource URLs",
                'rules[0].nonResourceURLs: Invalid value: []string{"/x"}: '
                "rules cannot apply to both regular resources and non-resource URLs",
            ],
        ),
    ],
)
def test_rules_say_verbs_and_what_they_apply_to(rule: dict[str, Any], expected: list[str]) -> None:
    assert validate_new(ROLES, rules=[rule]) == expected


def test_an_aggregated_role_selects_others() -> None:
    path = "aggregationRule.clusterRoleSelectors"
    assert validate_new(CLUSTER_ROLES, aggregationRule={}) == [
        f"{path}: Required value: "
        "at least one clusterRoleSelector required if aggregationRule is non-nil"
    ]
    selectors = [{"matchLabels": {"aggregate": "true"}}]
    assert validate_new(CLUSTER_ROLES, aggregationRule={"clusterRoleSelectors": selectors}) == []


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ({"kind": "ServiceAccount", "name": "a", "namespace": "b"}, []),
        (
            {"kind": "ServiceAccount", "name": "a"},
            ["subjects[0].namespace: Required value"],
        ),
        (
            {"kind": "ServiceAccount", "name": "a", "namespace": "b", "apiGroup": GROUP},
            [f'subjects[0].apiGroup: Unsupported value: "{GROUP}": supported values: ""'],
        ),
        (
            {"kind": "Group", "name": ""},
            [
                "subjects[0].name: Required value",
                'subjects[0].name: Invalid value: "": group name cannot be empty',
            ],
        ),
        (
            {"kind": "User", "name": "a", "apiGroup": "x"},
            [f'subjects[0].apiGroup: Unsupported value: "x": supported values: "{GROUP}"'],
        ),
        (
            {"kind": "Robot", "name": ""},
            [
                "subjects[0].name: Required value",
                'subjects[0].kind: Unsupported value: "Robot": '
                'supported values: "ServiceAccount", "User", "Group"',
            ],
        ),
    ],
)
def test_subjects_are_users_groups_and_service_accounts(
    subject: dict[str, str], expected: list[str]
) -> None:
    assert validate_new(CLUSTER_BINDINGS, subjects=[subject]) == expected


def test_a_cluster_role_binding_gives_cluster_roles_only() -> None:
    reference = {"kind": "Role", "name": "reader"}
    assert validate_new(BINDINGS, roleRef=reference) == []
    assert validate_new(CLUSTER_BINDINGS, roleRef=reference) == [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'
    ]


def test_a_binding_names_a_role() -> None:
    assert validate_new(BINDINGS, roleRef={"kind": "Role", "apiGroup": "x"}) == [
        f'roleRef.apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
        "roleRef.name: Required value",
    ]


@pytest.mark.parametrize("name", [BINDINGS, CLUSTER_BINDINGS])
def test_the_role_of_a_binding_never_changes(name: str) -> None:
    old = sample(name)
    new = old.replace(role_ref=old.role_ref.replace(name="admin"))
    [message] = validate_changed(new, old)
    assert message.startswith("roleRef: Invalid value")
    assert message.endswith("cannot change roleRef")


def test_references_get_their_group() -> None:
    binding = sample(BINDINGS)
    assert binding.role_ref.api_group == GROUP
    user, account = binding.subjects
    assert (user.api_group, account.api_group) == (GROUP, None)
