"""The CSR approving controller, after TestHandle and TestRecognizers of upstream's
sarapprove_test.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT,
    API_SERVER_CLIENT_KUBELET,
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)
from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.controllers.certificates.csrapproving import CSRApprovingController
from kcm.reconcile.plan import Approve, Plan
from kcm.testing.views import FakeView
from tests.signing_requests import build_pem_request, signing_request

USAGES = ["digital signature", "key encipherment", "client auth"]
NODE: dict[str, Any] = {"name": "system:node:n1", "organizations": ["system:nodes"]}
SELF = "Auto approving self kubelet client certificate after SubjectAccessReview."
OTHER = "Auto approving kubelet client certificate after SubjectAccessReview."


def build(
    username: str = "system:bootstrap:abcdef",
    groups: Sequence[str] = ("system:bootstrappers",),
    usages: Sequence[str] = tuple(USAGES),
    signer: str = API_SERVER_CLIENT_KUBELET,
    **request: Any,
) -> CertificateSigningRequest:
    pem = build_pem_request(**(request or NODE))
    return signing_request(pem, usages, signer, username=username, groups=list(groups))


def grant(subresource: str, *subjects: str, verb: str = "create") -> list[KubeObject]:
    """Returns a role for a subresource of requests and its binding to `Kind name` subjects."""
    name = f"role-{subresource}"
    rule = PolicyRule(
        verbs=[verb],
        api_groups=["certificates.k8s.io"],
        resources=[f"certificatesigningrequests/{subresource}"],
    )
    return [
        ClusterRole(metadata=ObjectMeta(name=name), rules=[rule]),
        ClusterRoleBinding(
            metadata=ObjectMeta(name=name),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name),
            subjects=[Subject(kind=s.split()[0], name=s.split()[1]) for s in subjects],
        ),
    ]


def reconcile(request: CertificateSigningRequest, *objects: KubeObject) -> Plan:
    controller = CSRApprovingController()
    return controller.reconcile("csr", FakeView(request, *objects, controller=controller))


def read_messages(plan: Plan) -> list[str | None]:
    """Returns the messages of the conditions that a plan adds."""
    messages = []
    for write in plan.writes:
        assert isinstance(write, Approve)
        assert isinstance(write.new, CertificateSigningRequest)
        conditions = write.new.status.conditions or []
        assert len(conditions) == 1
        condition = conditions[0]
        assert (condition.type, condition.status, condition.reason) == (
            "Approved", "True", "AutoApproved",
        )  # fmt: skip
        messages.append(condition.message)
    return messages


NODE_CLIENT = grant("nodeclient", "Group system:bootstrappers")
SELF_CLIENT = grant("selfnodeclient", "Group system:nodes")


@pytest.mark.parametrize(
    ("request_", "objects", "messages"),
    [
        (build(), NODE_CLIENT, [OTHER]),
        (build(), [], []),
        (build(), SELF_CLIENT, []),
        (build("system:node:n1", ["system:nodes"]), SELF_CLIENT, [SELF]),
        (build("system:node:n1", ["system:nodes"]), [], []),
        (build("system:node:n2", ["system:nodes"]), SELF_CLIENT, []),
        (
            build("system:node:n1", ["system:nodes"]),
            grant("nodeclient", "User system:node:n1"),
            [OTHER],
        ),
        (build("admin", ["system:masters"]), [], [OTHER]),
        (build(), grant("nodeclient", "Group system:bootstrappers", verb="get"), []),
        (build(), grant("nodeclient", "User system:bootstrappers"), []),
        (build(), grant("*", "Group system:bootstrappers"), []),
        (build(signer=API_SERVER_CLIENT), NODE_CLIENT, []),
        (build(usages=[*USAGES, "server auth"]), NODE_CLIENT, []),
        (build(usages=["digital signature", "client auth"]), NODE_CLIENT, [OTHER]),
        (build(name="n1", organizations=["system:nodes"]), NODE_CLIENT, []),
        (build(name="system:node:n1", organizations=["others"]), NODE_CLIENT, []),
        (build(**NODE, hosts=["n1"]), NODE_CLIENT, []),
    ],
)
def test_requests_of_kubelets_that_roles_allow_are_approved(
    request_: CertificateSigningRequest, objects: list[KubeObject], messages: list[str]
) -> None:
    assert read_messages(reconcile(request_, *objects)) == messages


@pytest.mark.parametrize("kind", ["Approved", "Denied"])
def test_what_is_decided_stays_so(kind: str) -> None:
    decided = CertificateSigningRequestCondition(type=kind, status="True")
    request = build().with_status(CertificateSigningRequestStatus(conditions=[decided]))
    assert reconcile(request, *NODE_CLIENT).writes == []


def test_an_aggregated_role_counts_with_what_it_gathers() -> None:
    gathered, binding = grant("nodeclient", "Group system:bootstrappers")
    assert isinstance(gathered, ClusterRole)
    part = gathered.with_metadata(name="part", labels={"to": "all"})
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}
    role = ClusterRole.model_validate(
        {"metadata": {"name": gathered.name}, "aggregationRule": selector}
    )
    assert read_messages(reconcile(build(), part, role, binding)) == [OTHER]
