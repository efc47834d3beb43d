from __future__ import annotations

from kcm.apiserver.auth.namespace_policy import namespace_role_bindings, namespace_roles

# The default Roles of Kubernetes 1.36: its testdata/namespace-roles.yaml.
NAMES = {
    ("kube-public", "system:controller:bootstrap-signer"),
    ("kube-system", "extension-apiserver-authentication-reader"),
    ("kube-system", "system::leader-locking-kube-controller-manager"),
    ("kube-system", "system::leader-locking-kube-scheduler"),
    ("kube-system", "system:controller:bootstrap-signer"),
    ("kube-system", "system:controller:cloud-provider"),
    ("kube-system", "system:controller:token-cleaner"),
}


def test_the_roles_are_those_of_upstream() -> None:
    assert {(role.namespace, role.name) for role in namespace_roles()} == NAMES


def test_every_role_is_bound_and_every_bound_role_is_there() -> None:
    bound = {(one.namespace, one.role_ref.name) for one in namespace_role_bindings()}
    assert bound == NAMES


def test_accounts_of_subjects_have_a_namespace_and_users_have_none() -> None:
    subjects = [one for binding in namespace_role_bindings() for one in binding.subjects or ()]
    assert {(one.kind, one.namespace, one.api_group) for one in subjects} == {
        ("ServiceAccount", "kube-system", None),
        ("User", None, "rbac.authorization.k8s.io"),
    }
