"""Claims are made for pods, after TestSyncHandler in pkg/controller/resourceclaim, Kubernetes 1.36.

Its rows about PodGroups, and about what only a cache has, are left out.
"""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.core_v1.pods import PodResourceClaim
from kcm.api.resource_v1 import ResourceClaim
from kcm.api.resource_v1.pod_claims import POD_CLAIM
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.resourceclaim import ResourceClaimController
from kcm.controllers.resourceclaim.pods import CREATES, new_claim
from kcm.reconcile.plan import Create, Failure, Outcome
from kcm.testing.views import NOW
from kcm.testing.world import World
from tests.unit.controllers.resourceclaim.objects import (
    NAME,
    WANTED,
    claim,
    pod,
    template,
    user,
)

CONTROLLER = ResourceClaimController()


def sync(subject: Pod, *others: KubeObject) -> World:
    world = World(subject, *others)
    world.carry_out(CONTROLLER.reconcile(f"pod:{subject.key}", world.view()))
    return world


def noted(world: World, subject: Pod) -> list[str | None]:
    """The names of the claims in the pod's status."""
    left = world.find(subject)
    assert left is not None
    return [one.resource_claim_name for one in left.status.resource_claim_statuses or ()]


def test_a_claim_is_made_from_the_template_and_noted() -> None:
    world = sync(pod(), template())
    (made,) = world.of(ResourceClaim)
    assert made.name is not None
    assert made.name.startswith("web-acme-")
    assert made.metadata.generate_name == "web-acme-"
    assert made.annotations == {POD_CLAIM: NAME}
    owners = made.metadata.owner_references
    assert owners is not None
    (owner,) = owners
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Pod", "web", pod().uid, True)
    assert not owner.block_owner_deletion
    assert made.spec == template().spec.spec
    assert noted(world, pod()) == [made.name]


def test_a_claim_that_is_there_and_noted_is_left_alone() -> None:
    owner = pod(noted="web-acme-1")
    world = sync(owner, template(), claim(owner=owner))
    assert len(world.of(ResourceClaim)) == 1
    assert noted(world, owner) == ["web-acme-1"]


def test_a_claim_that_was_deleted_is_made_again() -> None:
    owner = pod(noted="web-acme-1")
    world = sync(owner, template())
    (made,) = world.of(ResourceClaim)
    assert noted(world, owner) == [made.name]


def test_a_missing_template_is_an_error_and_an_event() -> None:
    world = World(pod())
    plan = CONTROLLER.reconcile("pod:default/web", world.view())
    assert isinstance(plan.error, errors.NotFound)
    (event,) = plan.events
    assert (event.type, event.reason, event.message) == (
        "Warning",
        "FailedResourceClaimCreation",
        'PodResourceClaim acme: resource claim template "template": '
        'resourceclaimtemplate.resource.k8s.io "template" not found',
    )


def test_a_creation_counts_even_if_the_next_template_is_missing() -> None:
    lacking = PodResourceClaim(name="other", resource_claim_template_name="missing")
    world = World(pod(resource_claims=[WANTED, lacking]), template())
    plan = CONTROLLER.reconcile("pod:default/web", world.view())
    (write,) = plan.writes
    assert isinstance(write, Create)
    assert isinstance(plan.error, errors.NotFound)
    done = Outcome(done=[(write, write.obj)])
    assert plan.counts_after(done) == CREATES.count("success", "false")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_done_reserves_nothing(phase: str) -> None:
    owner = pod(node="n1", noted="web-acme-1", phase=phase)
    world = sync(owner, claim(owner=owner, allocated=True))
    (untouched,) = world.of(ResourceClaim)
    assert untouched.status.reserved_for is None


def test_a_claim_that_was_made_and_not_noted_is_found_by_its_owner_and_annotation() -> None:
    world = sync(pod(), claim(owner=pod()))
    assert len(world.of(ResourceClaim)) == 1
    assert noted(world, pod()) == ["web-acme-1"]


@pytest.mark.parametrize(
    "subject",
    [pod(deleting=NOW), pod(resource_claims=None), pod(phase="Succeeded"), pod(phase="Failed")],
)
def test_pods_that_are_deleted_or_done_or_want_no_claims_get_none(subject: Pod) -> None:
    assert sync(subject, template()).of(ResourceClaim) == []


def test_no_pod_has_no_plan() -> None:
    assert CONTROLLER.reconcile("pod:default/web", World().view()).writes == []


@pytest.mark.parametrize("other", [claim(namespace="other"), claim("web-acme")])
def test_claims_of_others_do_not_count(other: ResourceClaim) -> None:
    world = sync(pod(), template(), other)
    assert len(world.of(ResourceClaim)) == 2


def test_a_pod_with_a_node_is_added_to_an_allocated_claim() -> None:
    owner = pod(node="n1", noted="web-acme-1")
    world = sync(owner, template(), claim(owner=owner, allocated=True))
    (reserved,) = world.of(ResourceClaim)
    assert reserved.status.reserved_for == [user(owner)]


@pytest.mark.parametrize("node", [None, "n1"])
def test_a_pod_without_a_node_or_a_claim_without_allocation_is_left_to_the_scheduler(
    node: str | None,
) -> None:
    owner = pod(node=node, noted="web-acme-1")
    world = sync(owner, claim(owner=owner, allocated=node is None))
    (untouched,) = world.of(ResourceClaim)
    assert untouched.status.reserved_for is None


def test_creations_are_counted_and_failures_told() -> None:
    world = World(pod(), template(admin=True))
    plan = CONTROLLER.reconcile("pod:default/web", world.view())
    (write,) = plan.writes
    assert isinstance(write, Create)
    assert plan.counts_after(Outcome(done=[(write, write.obj)])) == CREATES.count("success", "true")
    failed = Outcome(failures=[Failure(write, errors.Conflict("no"))])
    assert plan.counts_after(failed) == CREATES.count("failure", "true")
    (event,) = plan.events_after(failed)
    assert event.message == "PodResourceClaim acme: create ResourceClaim : no"


def test_long_names_lose_the_same_share() -> None:
    wanted = PodResourceClaim(name="c" * 30, resource_claim_template_name="template")
    base = new_claim(pod("p" * 60), wanted, template()).metadata.generate_name
    assert base == "p" * (60 * 57 // 92) + "-" + "c" * (30 * 57 // 92)
    assert new_claim(pod(), WANTED, template()).metadata.generate_name == "web-acme-"
