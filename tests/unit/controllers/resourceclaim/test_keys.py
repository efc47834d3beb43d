"""Which keys a change adds, after the tests of event handlers and of
TestEnqueuePodExtendedResourceClaims in pkg/controller/resourceclaim, Kubernetes 1.36.
"""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.pods import PodExtendedResourceClaimStatus, PodResourceClaim
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.resourceclaim.keys import of_claim, of_pod, of_template
from kcm.reconcile.contract import Change
from kcm.testing.views import NOW, FakeView
from tests.unit.controllers.resourceclaim.objects import claim, pod, template, user

CLAIM, POD = "claim:default/web-acme-1", "pod:default/web"
EXTENDED = {
    "extended_resource_claim_status": PodExtendedResourceClaimStatus(resource_claim_name="extra")
}
NOTED = pod(noted="web-acme-1")
BOUND = pod(noted="web-acme-1", node="n1")


@pytest.mark.parametrize(
    ("subject", "others", "keys"),
    [
        (pod(resource_claims=None), (), []),
        (pod(), (), [POD]),
        (pod(deleting=NOW, node="n1"), (), []),
        (NOTED, (), [POD]),
        (NOTED, (claim(owner=NOTED),), []),
        (NOTED, (claim(),), []),  # somebody else's
        (BOUND, (claim(owner=BOUND, allocated=True),), [POD]),
        (BOUND, (claim(owner=BOUND, allocated=True, users=[user(BOUND)]),), []),
        (BOUND, (claim(owner=BOUND),), []),
        (pod(noted="web-acme-1", node="n1", phase="Failed"), (), [CLAIM]),
        (
            pod(noted="web-acme-1", node="n1", phase="Failed"),
            (claim(owner=BOUND, allocated=True),),
            [CLAIM],
        ),
        (pod(noted="web-acme-1", phase="Succeeded"), (claim(owner=NOTED),), [CLAIM]),
        (pod(noted="web-acme-1", deleting=NOW), (claim(owner=NOTED),), [CLAIM]),
        (
            pod(resource_claims=[PodResourceClaim(name="a", resource_claim_name="missing")]),
            (),
            [],
        ),
        (pod(resource_claims=None, phase="Running", status=EXTENDED), (), []),
        (
            pod(resource_claims=None, phase="Failed", status=EXTENDED),
            (),
            ["claim:default/extra"],
        ),
    ],
)
def test_a_changed_pod(subject: Pod, others: tuple[KubeObject, ...], keys: list[str]) -> None:
    view = FakeView(subject, *others)
    assert list(of_pod(Change(subject, subject), view)) == keys


def test_a_deleted_pod_frees_its_claims() -> None:
    subject = pod(noted="web-acme-1", status=EXTENDED)
    assert list(of_pod(Change(subject, None), FakeView())) == [CLAIM, "claim:default/extra"]


def test_a_changed_claim_adds_its_own_key_and_the_pods_that_lack_some() -> None:
    made = claim(owner=BOUND, allocated=True)
    assert list(of_claim(Change(None, made), FakeView(made, BOUND))) == [CLAIM, POD]
    assert list(of_claim(Change(made, made), FakeView(made, NOTED))) == [CLAIM]
    assert list(of_claim(Change(made, None), FakeView())) == []
    assert list(of_claim(Change(made, None), FakeView(NOTED))) == [POD]


def test_a_template_adds_the_pods_of_its_namespace_that_wait_for_it() -> None:
    others = pod("elsewhere", namespace="tmp")
    view = FakeView(pod(), others, template())
    assert list(of_template(Change(None, template()), view)) == [POD]
