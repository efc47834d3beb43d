"""CSR approving: approves the client certificates of kubelets that roles allow.

A bootstrap token's group may get the first certificate of a node (`nodeclient`), a node renews its
own (`selfnodeclient`).
Source: pkg/controller/certificates/approver/sarapprove.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT_KUBELET,
    APPROVED,
    DENIED,
    CertificateSigningRequest,
    has_condition,
)
from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Subject
from kcm.apimachinery.certificates import parse_request
from kcm.helpers.aggregation import aggregate_rules
from kcm.helpers.signing_requests import check_kubelet_client, with_condition
from kcm.sdk import Approve, Controller, Plan, View, Watch, own_key

_GROUP, _RESOURCE = "certificates.k8s.io", "certificatesigningrequests"
_SELF_MESSAGE = "Auto approving self kubelet client certificate after SubjectAccessReview."
_MESSAGE = "Auto approving kubelet client certificate after SubjectAccessReview."


class CSRApprovingController(Controller):
    """Approves requests of kubelets. A key is a CertificateSigningRequest."""

    name = "certificatesigningrequest-approving-controller"
    short_name = "csrapproving"
    reads = (ClusterRole, ClusterRoleBinding)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(CertificateSigningRequest, own_key),)

    def reconcile(self, key: str, view: View) -> Plan:
        request = view.lister(CertificateSigningRequest).find(key)
        if request is None or request.deleting or request.status.certificate:
            return Plan()
        if has_condition(request, APPROVED) or has_condition(request, DENIED):
            return Plan()
        message = _decide(request, view)
        if not message:
            return Plan()
        approved = with_condition(request, APPROVED, "AutoApproved", message, view.now)
        return Plan().then(Approve(approved, request))


def _decide(request: CertificateSigningRequest, view: View) -> str:
    """Returns the message of the approval, "" for a request that is left to somebody else."""
    spec = request.spec
    if spec.signer_name != API_SERVER_CLIENT_KUBELET:
        return ""
    parsed = parse_request(spec.request)
    try:
        check_kubelet_client(parsed, spec.usages or ())
    except ValueError:
        return ""
    user, groups = spec.username or "", spec.groups or ()
    ways = [("nodeclient", _MESSAGE)]
    if parsed.common_name == user:
        ways.insert(0, ("selfnodeclient", _SELF_MESSAGE))
    for subresource, message in ways:
        if may_create(view, user, groups, _GROUP, f"{_RESOURCE}/{subresource}"):
            return message
    return ""


# --- Whether roles allow a user to create something in the cluster, for controllers that ask it.
#
# The API server prepares the rules of many users (`kcm.apiserver.auth.rbac`). A controller asks
# seldom, and about the cluster alone. Source: pkg/registry/rbac/validation/rule.go, Kubernetes
# 1.33.


_MASTERS = "system:masters"
_ANY = "*"


def may_create(view: View, user: str, groups: Sequence[str], api_group: str, resource: str) -> bool:
    """Reports whether ClusterRoles allow the user to create this resource in the whole cluster.

    `resource` may name a subresource, as in `pods/eviction`. Needs the caches of ClusterRoles and
    ClusterRoleBindings.
    """
    if _MASTERS in groups:
        return True
    roles = view.lister(ClusterRole)
    for binding in view.lister(ClusterRoleBinding).list():
        if not any(_names(subject, user, groups) for subject in binding.subjects or ()):
            continue
        role = roles.find(binding.role_ref.name)
        if role is not None and _allow(_list_rules(role, view), api_group, resource):
            return True
    return False


def _names(subject: Subject, user: str, groups: Sequence[str]) -> bool:
    """Reports whether a subject is the user, or a group of the user."""
    if subject.kind == "ServiceAccount":
        return user == f"system:serviceaccount:{subject.namespace}:{subject.name}"
    return subject.name == user if subject.kind == "User" else subject.name in groups


def _list_rules(role: ClusterRole, view: View) -> Iterable[PolicyRule]:
    if role.aggregation_rule is None:
        return role.rules or ()
    return aggregate_rules(role, view.lister(ClusterRole).list())


def _allow(rules: Iterable[PolicyRule], api_group: str, resource: str) -> bool:
    wanted = {_ANY, resource, f"{_ANY}/{resource.partition('/')[2]}"}
    return any(
        {_ANY, "create"} & set(rule.verbs)
        and {_ANY, api_group} & set(rule.api_groups or ())
        and wanted & set(rule.resources or ())
        and not rule.resource_names
        for rule in rules
    )
