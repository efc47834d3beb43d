"""Who may change the status of a claim, after TestAuthorizedForBinding and
TestAuthorizedForDeviceStatus of pkg/registry/resource/utils_test.go.
"""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.core_v1.affinity import NodeSelector
from kcm.api.resource_v1 import ResourceClaim, ResourceClaimStatus
from kcm.api.resource_v1.claims import AllocatedDeviceStatus
from kcm.api.resource_v1.requests import AllocationResult
from kcm.apiserver.admission.claim_statuses import ClaimStatusAuthorization
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.auth.authorizer import AuthorizerDecision, Caller
from kcm.apiserver.auth.service_accounts import NODE_NAME
from kcm.store.admission.plugin import Write
from kcm.testing import builders
from tests.unit.controllers.resourceclaim.objects import claim, user

CLAIMS = ResourceClaim.resource
ON_N1 = User("system:serviceaccount:a:driver", extra=((NODE_NAME, ("n1",)),))
ELSEWHERE = User("system:serviceaccount:a:driver", extra=((NODE_NAME, ("n2",)),))
JANE = User("jane", extra=((NODE_NAME, ("n1",)),))
BINDING = "update binding"


class Permissions:
    """An authorizer that allows some verbs, each with a subresource and perhaps a name."""

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        words = f"{asked.verb} {asked.subresource} {asked.name}".strip()
        return AuthorizerDecision(words in self._allowed, "")


def status(*drivers: str, node: str = "n1", reserved: bool = False) -> ResourceClaimStatus:
    """Returns the status of an allocated claim on which these drivers have reported."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    selector = NodeSelector.model_validate({"nodeSelectorTerms": [term]}) if node else None
    return ResourceClaimStatus(
        allocation=AllocationResult(node_selector=selector),
        reserved_for=[user(builders.pod("web"))] if reserved else None,
        devices=[AllocatedDeviceStatus(driver=one, pool="p", device="d") for one in drivers]
        or None,
    )


def refused(
    new: ResourceClaimStatus, old: ResourceClaimStatus, *allowed: str, who: User = JANE
) -> list[str]:
    """Returns the fields whose change is refused to a user with these permissions."""
    caller = Caller(who, Permissions(*allowed))  # type: ignore[arg-type] # it only authorizes
    write = Write(
        "UPDATE", CLAIMS, claim().with_status(new), claim().with_status(old), "status",
        AdmissionRequest(caller=caller),
    )  # fmt: skip
    try:
        ClaimStatusAuthorization().admit(write)
    except errors.Invalid as error:
        return [cause.field for cause in error.causes]
    return []


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (status(), ResourceClaimStatus()),
        (ResourceClaimStatus(), status()),
        (status(reserved=True), status()),
    ],
)
def test_allocations_and_reservations_need_a_permission(
    new: ResourceClaimStatus, old: ResourceClaimStatus
) -> None:
    assert refused(new, old) == ["status.allocation"]
    assert refused(new, old, "update status") == ["status.allocation"]
    assert refused(new, old, BINDING) == []
    assert refused(new, old, "patch binding") == []


def test_what_does_not_change_needs_none() -> None:
    assert refused(status("a", reserved=True), status("a", reserved=True)) == []


@pytest.mark.parametrize(
    ("who", "allowed", "refusals"),
    [
        (ON_N1, ("associated-node:update driver a",), 0),
        (ON_N1, ("arbitrary-node:patch driver a",), 0),
        (ON_N1, ("associated-node:update driver b",), 1),
        (ELSEWHERE, ("associated-node:update driver a",), 1),
        (ELSEWHERE, ("arbitrary-node:update driver a",), 0),
        (JANE, ("associated-node:update driver a",), 1),
        (JANE, (), 1),
    ],
)
def test_reports_of_a_driver_need_a_permission_for_it(
    who: User, allowed: tuple[str, ...], refusals: int
) -> None:
    for new, old in ((status("a"), status()), (status(), status("a"))):
        assert refused(new, old, *allowed, who=who) == ["status.devices"] * refusals


def test_each_driver_counts_and_a_claim_of_no_node_is_anywhere() -> None:
    both = status("a", "b")
    assert refused(both, status(), "arbitrary-node:update driver a") == ["status.devices"]
    nowhere = status("a", node="")
    assert refused(nowhere, status(node=""), "associated-node:update driver a", who=ON_N1) == [
        "status.devices"
    ]


def test_reports_go_with_the_allocation_and_kcm_asks_nobody() -> None:
    assert refused(ResourceClaimStatus(), status("a"), BINDING) == []
    write = Write("UPDATE", CLAIMS, claim().with_status(status()), claim(), "status")
    assert ClaimStatusAuthorization().admit(write) is write
