"""CSR approving: approves the client certificates of kubelets that roles allow.

A bootstrap token's group may get the first certificate of a node (`nodeclient`), a node renews its
own (`selfnodeclient`).
Source: pkg/controller/certificates/approver/sarapprove.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT_KUBELET,
    APPROVED,
    DENIED,
    CertificateSigningRequest,
    has_condition,
)
from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding
from kcm.apimachinery.certificates import parse_request
from kcm.helpers.cluster_permissions import may_create
from kcm.helpers.signing_requests import check_kubelet_client, with_condition
from kcm.reconcile.contract import Controller, View, Watch, own_key
from kcm.reconcile.plan import Approve, Plan

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
