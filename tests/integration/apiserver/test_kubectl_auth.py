"""`kubectl auth` and impersonation, with the oldest and newest supported kubectl."""

from __future__ import annotations

import pytest

from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live


@pytest.fixture
def jane(kubectl: Kubectl) -> Kubectl:
    """Returns kubectl with a kubeconfig that has a user `jane` besides the administrator."""
    original = kubectl.kubeconfig
    kubectl.kubeconfig = kubectl.folder / "kubeconfig"
    kubectl.kubeconfig.write_text(original.read_text())
    kubectl("config", "set-credentials", "jane", "--token=janes-token")
    return kubectl


def test_can_i_tells_the_administrator_yes_and_jane_no(jane: Kubectl) -> None:
    assert jane("auth", "can-i", "create", "pods") == "yes\n"
    assert jane("auth", "can-i", "get", "/metrics") == "yes\n"
    done = jane.run("auth", "can-i", "create", "pods", "--user=jane")
    assert (done.stdout, done.returncode) == ("no\n", 1)
    assert jane.run("auth", "can-i", "get", "/metrics", "--user=jane").stdout == "no\n"
    assert jane("auth", "can-i", "get", "/version", "--user=jane") == "yes\n"


def test_a_role_binding_gives_jane_her_rights_and_can_i_lists_them(jane: Kubectl) -> None:
    jane("create", "role", "reader", "--verb=get,list", "--resource=pods,pods/log")
    jane("create", "rolebinding", "jane-reads", "--role=reader", "--user=jane")
    assert jane("auth", "can-i", "list", "pods", "--user=jane") == "yes\n"
    assert jane("auth", "can-i", "get", "pods/log", "--user=jane") == "yes\n"
    assert jane.run("auth", "can-i", "list", "pods", "-A", "--user=jane").stdout == "no\n"
    listed = jane("auth", "can-i", "--list", "--user=jane")
    assert any(
        line.startswith("pods/log ") and "[get list]" in line for line in listed.splitlines()
    )
    assert "[/livez]" in listed
    assert jane("get", "pods", "--user=jane") == ""
    assert 'cannot delete resource "pods"' in jane.run_failing("delete", "pod", "x", "--user=jane")


def test_whoami_tells_name_and_groups(jane: Kubectl) -> None:
    output = jane("auth", "whoami", "--user=jane")
    assert "jane" in output
    assert "[dev system:authenticated]" in output
    assert "system:masters" in jane("auth", "whoami")


def test_as_somebody_else(jane: Kubectl) -> None:
    assert jane("auth", "can-i", "list", "pods", "--as=somebody", "--as-group=system:masters")
    done = jane.run("auth", "can-i", "list", "pods", "--as=somebody")
    assert done.stdout == "no\n"
    refused = jane.run_failing("get", "pods", "--user=jane", "--as=kubernetes-admin")
    assert 'users "kubernetes-admin" is forbidden: User "jane" cannot impersonate' in refused
    account = f"system:serviceaccount:{jane.namespace}:robot"
    jane("create", "rolebinding", "robot-edits", "--clusterrole=edit",
         f"--serviceaccount={jane.namespace}:robot")  # fmt: skip
    assert jane("auth", "can-i", "create", "pods", f"--as={account}") == "yes\n"
    assert jane.run("auth", "can-i", "create", "roles", f"--as={account}").stdout == "no\n"


def test_reconcile_makes_and_completes_roles(jane: Kubectl) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "kept", "namespace": jane.namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }  # fmt: skip
    assert "reconciled" in jane("auth", "reconcile", "-f", "-", stdin=role)
    role["rules"] = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    jane("auth", "reconcile", "-f", "-", stdin=role)
    output = jane("get", "role", "kept", "-o", "jsonpath={.rules[*].resources[0]}")
    assert output == "pods secrets"


def test_the_default_roles_are_described(kubectl: Kubectl, api: Live) -> None:
    assert "rbac-defaults" in kubectl("describe", "clusterrole", "system:discovery")
    resources = kubectl("api-resources", "--verbs=create", "-o", "name")
    assert "selfsubjectaccessreviews.authorization.k8s.io" in resources
    assert "selfsubjectreviews.authentication.k8s.io" in resources
