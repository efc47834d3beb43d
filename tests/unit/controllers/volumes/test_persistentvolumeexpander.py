"""Volumes grow with their claims.

After TestSyncHandler in pkg/controller/volume/expand/expand_controller_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.persistent_volumes import CSIPersistentVolumeSource
from kcm.api.core_v1.volume_claims import PersistentVolumeClaimCondition
from kcm.api.volumes.local import DRIVER
from kcm.apimachinery.quantity import Quantity
from kcm.controllers.volumes.persistentvolumeexpander import (
    PersistentVolumeExpanderController,
    growing_claims,
)
from kcm.helpers.volumes.binding import capacity_of
from kcm.reconcile.contract import Change
from kcm.testing import storage_builders
from kcm.testing.views import FakeView
from kcm.testing.world import World

CONTROLLER = PersistentVolumeExpanderController()


def asking(size: str, has: str = "1Gi", phase: str = "Bound") -> PersistentVolumeClaim:
    resizing = PersistentVolumeClaimCondition(type="Resizing", status="True")
    status = {"phase": phase, "capacity": {"storage": Quantity(has)}, "conditions": [resizing]}
    return storage_builders.claim("data", size, volume_name="disk", status=status)


def bound(driver: str = DRIVER, uid: str | None = None, **fields: Any) -> PersistentVolume:
    owner = asking("1Gi")
    reference = ObjectReference(
        namespace="default", name="data", uid=owner.uid if uid is None else uid
    )
    source = CSIPersistentVolumeSource(driver=driver, volume_handle="pvc-1")
    fields = {"host_path": None, "csi": source} | fields
    return storage_builders.volume("disk", "1Gi", phase="Bound", claim_ref=reference, **fields)


def test_a_folder_grows_at_once() -> None:
    claim = asking("5Gi")
    world = World(claim, bound())
    plan = CONTROLLER.reconcile(claim.key, world.view())
    (event,) = plan.events_after(world.carry_out(plan))
    assert (event.reason, event.message) == (
        "VolumeResizeSuccessful",
        "ExpandVolume succeeded for volume default/data",
    )
    grown = world.find(claim)
    assert isinstance(grown, PersistentVolumeClaim)
    assert grown.status.capacity == {"storage": Quantity("5Gi")}
    assert grown.status.conditions is None
    (volume,) = world.of(PersistentVolume)
    assert isinstance(volume, PersistentVolume)
    assert capacity_of(volume) == Quantity("5Gi")
    assert CONTROLLER.reconcile(claim.key, world.view()).writes == []


@pytest.mark.parametrize(
    ("volume", "kind"),
    [
        (bound("disks.example.com"), "Normal"),
        (bound(csi=None, host_path=storage_builders.volume().spec.host_path), "Warning"),
    ],
)
def test_volumes_of_others_wait_for_an_external_controller(
    volume: PersistentVolume, kind: str
) -> None:
    plan = CONTROLLER.reconcile("default/data", FakeView(asking("5Gi"), volume))
    (event,) = plan.events
    assert (event.type, event.reason, event.message) == (
        kind,
        "ExternalExpanding",
        "waiting for an external controller to expand this PVC",
    )
    assert plan.writes == []


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], 'failed to get PV "disk"'),
        ([bound(uid="other")], "persistent Volume is not bound to PVC being updated"),
    ],
)
def test_a_claim_without_its_volume_is_an_error(objects: list[Any], words: str) -> None:
    plan = CONTROLLER.reconcile("default/data", FakeView(asking("5Gi"), *objects))
    assert words in str(plan.error)


@pytest.mark.parametrize(
    ("old", "new", "synced"),
    [
        (None, asking("5Gi"), True),
        (None, asking("1Gi"), False),
        (None, asking("5Gi", phase="Pending"), False),
        (asking("1Gi"), asking("5Gi"), True),
        (asking("5Gi"), asking("6Gi"), True),
        (asking("5Gi"), asking("5Gi"), False),
        (asking("5Gi"), None, False),
    ],
)
def test_claims_that_begin_to_ask_for_more_are_synced(
    old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None, synced: bool
) -> None:
    assert bool(list(growing_claims(Change(old, new), FakeView()))) == synced
