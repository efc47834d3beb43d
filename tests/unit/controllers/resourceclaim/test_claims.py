"""Claims are freed of pods that need them no more, after TestSyncHandler in
pkg/controller/resourceclaim, Kubernetes 1.36.
"""

from __future__ import annotations

import pytest

from kcm.api.resource_v1 import ResourceClaim
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.resourceclaim import ResourceClaimController
from kcm.reconcile.plan import Patch
from kcm.store.writes.guards import Absent
from kcm.testing.views import NOW
from kcm.testing.world import World
from tests.unit.controllers.resourceclaim.objects import OTHERS, claim, pod, user

WEB, OTHER = pod(), pod("other")
CONTROLLER = ResourceClaimController()


def sync(subject: ResourceClaim, *others: KubeObject) -> ResourceClaim | None:
    """Returns what is left of a claim after its sync."""
    world = World(subject, *others)
    world.carry_out(CONTROLLER.reconcile(f"claim:{subject.key}", world.view()))
    assert not world.failures
    return world.find(subject)


def describe(left: ResourceClaim | None) -> tuple[bool, list[str], bool] | None:
    """Whether the claim is allocated, for whom it is reserved, and whether it has the finalizer."""
    if left is None:
        return None
    users = [one.name for one in left.status.reserved_for or ()]
    return left.status.allocation is not None, users, bool(left.metadata.finalizers)


@pytest.mark.parametrize("others", [(WEB,), (pod(deleting=NOW, node="n1"),)])
def test_a_claim_stays_reserved_for_a_pod_that_may_run(others: tuple[KubeObject, ...]) -> None:
    reserved = claim(users=[user(WEB)], allocated=True, finalizer=True)
    assert describe(sync(reserved, *others)) == (True, ["web"], True)


@pytest.mark.parametrize(
    "others",
    [
        (),
        (pod(metadata={"uid": "another"}),),
        (pod(phase="Succeeded"),),
        (pod(phase="Failed"),),
        (pod(deleting=NOW),),
    ],
)
def test_a_claim_is_not_allocated_after_its_last_pod(others: tuple[KubeObject, ...]) -> None:
    reserved = claim(users=[user(WEB)], allocated=True, finalizer=True)
    assert describe(sync(reserved, *others)) == (False, [], False)


def test_a_claim_stays_allocated_for_the_pods_that_are_left() -> None:
    reserved = claim(users=[user(WEB), user(OTHER)], allocated=True, finalizer=True)
    assert describe(sync(reserved, WEB)) == (True, ["web"], True)


def test_users_that_are_no_pods_stay() -> None:
    reserved = claim(users=[user(WEB), OTHERS], allocated=True, finalizer=True)
    assert describe(sync(reserved, pod(phase="Succeeded"))) == (True, ["foo"], True)


def test_a_claim_without_the_finalizer_was_allocated_by_somebody_else() -> None:
    reserved = claim(users=[user(WEB)], allocated=True)
    assert describe(sync(reserved, pod(phase="Succeeded"))) == (True, [], False)


def test_a_deleted_claim_goes_when_nobody_uses_it() -> None:
    for users in ((), (user(WEB),)):
        deleted = claim(users=users, allocated=True, finalizer=True, deleting=True)
        assert sync(deleted) is None


def test_the_claim_of_a_pod_that_is_done_is_deleted() -> None:
    done = pod(phase="Succeeded", noted="web-acme-1")
    made = claim(owner=done, users=[user(done)], allocated=True, finalizer=True)
    assert sync(made, done) is None


def test_the_claim_of_a_pod_that_is_gone_is_left_to_the_garbage_collector() -> None:
    assert describe(sync(claim(owner=WEB))) == (False, [], False)


def test_a_reservation_of_a_pod_that_the_cache_lacks_is_taken_away_only_if_it_is_absent() -> None:
    world = World(claim(users=[user(WEB)], allocated=True))
    release = CONTROLLER.reconcile("claim:default/web-acme-1", world.view()).writes[0]
    assert isinstance(release, Patch)
    assert release.guards == (Absent("pods", "default/web", WEB.uid),)
