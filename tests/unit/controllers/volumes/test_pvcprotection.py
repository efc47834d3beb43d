"""Claims that pods use stay until no pod on a node does.

The cases are those of TestPVCProtectionController in
pkg/controller/volume/pvcprotection/pvc_protection_controller_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.api.core_v1.volume_sources import EmptyDirVolumeSource, PersistentVolumeClaimVolumeSource
from kcm.api.core_v1.volumes import EphemeralVolumeSource, PersistentVolumeClaimTemplate, Volume
from kcm.api.volumes.finalizers import CLAIM_PROTECTION
from kcm.apimachinery.ownership import new_controller_ref
from kcm.controllers.volumes.pvcprotection import (
    PVCProtectionController,
    claims_of_pod,
    claims_to_change,
)
from kcm.reconcile.contract import Change
from kcm.testing.builders import pod
from kcm.testing.storage_builders import claim
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World

CONTROLLER = PVCProtectionController()
EMPTY = Volume(name="data", empty_dir=EmptyDirVolumeSource())
DATA = Volume(
    name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data")
)
EPHEMERAL = Volume(
    name="data",
    ephemeral=EphemeralVolumeSource(volume_claim_template=PersistentVolumeClaimTemplate()),
)


def protected(**metadata: Any) -> PersistentVolumeClaim:
    return claim(metadata={"finalizers": [CLAIM_PROTECTION], **metadata})


def deleted(**metadata: Any) -> PersistentVolumeClaim:
    return protected(deletion_timestamp=NOW, **metadata)


def user(volume: Volume = DATA, *, node: str | None = "n1", **fields: Any) -> Pod:
    return pod("user", node=node, volumes=[volume], **fields)


def finalizers_after(subject: PersistentVolumeClaim, *pods: Pod) -> list[str] | None:
    """The claim's finalizers after a sync; None if the claim is gone."""
    world = World(subject, *pods)
    world.carry_out(CONTROLLER.reconcile(subject.key, world.view()))
    left = world.find(subject)
    return None if left is None else left.metadata.finalizers or []


def test_a_new_claim_gets_the_finalizer() -> None:
    assert finalizers_after(claim()) == [CLAIM_PROTECTION]


def test_a_claim_with_the_finalizer_is_left_alone() -> None:
    assert CONTROLLER.reconcile("default/data", FakeView(protected())).writes == []


def test_a_claim_being_deleted_gets_no_finalizer() -> None:
    gone = claim(metadata={"deletion_timestamp": NOW, "finalizers": ["example.com/x"]})
    assert CONTROLLER.reconcile(gone.key, FakeView(gone)).writes == []


def test_a_deleted_claim_that_nobody_uses_goes() -> None:
    assert finalizers_after(deleted()) is None


@pytest.mark.parametrize(
    "using",
    [
        user(),
        user(phase="Succeeded"),  # its volumes may still be mounted
        user(phase="Failed"),
        user(deleting=NOW),
        user(deleting=NOW, metadata={"deletion_grace_period_seconds": 0}),
    ],
)
def test_a_deleted_claim_stays_while_a_pod_on_a_node_uses_it(using: Pod) -> None:
    assert finalizers_after(deleted(), using) == [CLAIM_PROTECTION]


@pytest.mark.parametrize(
    "bystander",
    [
        user(EMPTY),
        user(node=None),
        pod("user", node="n1", namespace="other", volumes=[DATA]),
    ],
)
def test_a_deleted_claim_does_not_stay_for_other_pods(bystander: Pod) -> None:
    assert finalizers_after(deleted(), bystander) is None


def test_an_ephemeral_claim_stays_for_its_own_pod_until_that_is_shut_down() -> None:
    owner = user(EPHEMERAL)
    running = claim(
        "user-data",
        metadata={
            "finalizers": [CLAIM_PROTECTION],
            "deletion_timestamp": NOW,
            "owner_references": [new_controller_ref(owner)],
        },
    )
    assert finalizers_after(running, owner) == [CLAIM_PROTECTION]
    for seconds, deleting in ((30, NOW), (0, None)):
        metadata = {"deletion_grace_period_seconds": seconds}
        busy = user(EPHEMERAL, deleting=deleting, metadata=metadata)
        assert finalizers_after(running, busy) == [CLAIM_PROTECTION]
    shut = user(EPHEMERAL, deleting=NOW, metadata={"deletion_grace_period_seconds": 0})
    assert finalizers_after(running, shut) is None
    foreign = running.with_metadata(owner_references=None)
    assert finalizers_after(foreign, owner) is None


# --- keys


def test_only_claims_whose_finalizer_may_change_are_synced() -> None:
    view = FakeView()
    for subject, keys in (
        (claim(), ["default/data"]),
        (protected(), []),
        (deleted(), ["default/data"]),
    ):
        assert list(claims_to_change(Change(None, subject), view)) == keys
    assert list(claims_to_change(Change(deleted(), None), view)) == []


@pytest.mark.parametrize(
    ("old", "new", "synced"),
    [
        (user(), None, True),
        (user(), user(), False),
        (user(), user(phase="Succeeded"), True),
        (user(node=None), user(node=None), True),
        (user(EMPTY), None, False),
        # The update may hide a deletion and a creation.
        (user(metadata={"uid": "before"}), user(EMPTY), True),
    ],
)
def test_pods_that_may_release_a_deleted_claim_have_it_synced(
    old: Pod, new: Pod | None, synced: bool
) -> None:
    keys = list(claims_of_pod(Change(old, new), FakeView(deleted())))
    assert keys == (["default/data"] if synced else [])
    assert list(claims_of_pod(Change(old, new), FakeView(protected()))) == []
