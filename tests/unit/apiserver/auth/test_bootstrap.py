"""Default roles that exist are completed, and nothing is removed from them."""

from __future__ import annotations

from kcm.api.rbac_v1 import PolicyRule, Subject
from kcm.apiserver.auth import policy
from kcm.apiserver.auth.bootstrap import complete_binding, complete_role
from kcm.kinds import validation

ROLES = {role.name: role for role in policy.cluster_roles()}
BINDINGS = {binding.name: binding for binding in policy.cluster_role_bindings()}
MORE = PolicyRule(verbs=["get"], api_groups=["x"], resources=["y"])


def test_every_role_and_binding_is_valid_and_bindings_name_roles_that_exist() -> None:
    for obj in (*ROLES.values(), *BINDINGS.values()):
        assert not validation.validate_create(obj), obj.name
    assert {binding.role_ref.name for binding in BINDINGS.values()} <= ROLES.keys()


def test_rules_that_are_missing_come_back_and_others_stay() -> None:
    wanted = ROLES["system:node"]
    assert wanted.rules is not None
    changed = wanted.replace(rules=[MORE, *wanted.rules[1:]])
    cluster_role = complete_role(changed, wanted)
    assert cluster_role.rules == [MORE, *wanted.rules[1:], wanted.rules[0]]


def test_what_covers_the_rules_is_enough() -> None:
    wanted = ROLES["system:kube-scheduler"]
    everything = PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"])
    changed = wanted.replace(rules=[everything])
    assert complete_role(changed, wanted) is changed


def test_selectors_that_are_missing_come_back() -> None:
    wanted = ROLES["edit"]
    assert complete_role(wanted.replace(aggregation_rule=None), wanted) == wanted
    assert complete_role(wanted, wanted) is wanted


def test_subjects_that_are_missing_come_back_and_others_stay() -> None:
    wanted = BINDINGS["cluster-admin"]
    jane = Subject(kind="User", name="jane")
    cluster_role_binding = complete_binding(wanted.replace(subjects=[jane]), wanted)
    assert cluster_role_binding.subjects == [jane, *(wanted.subjects or ())]
    assert complete_binding(cluster_role_binding, wanted) is cluster_role_binding
