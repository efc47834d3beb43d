"""Volumes that are bound stay until they are not.

The cases are those of TestPVProtectionController in
pkg/controller/volume/pvprotection/pv_protection_controller_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import PersistentVolume
from kcm.api.volumes.finalizers import VOLUME_PROTECTION
from kcm.controllers.volumes.pvprotection import PVProtectionController, volumes_to_change
from kcm.reconcile.contract import Change
from kcm.testing.storage_builders import volume
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World

PROTECTED = {"finalizers": [VOLUME_PROTECTION]}
DELETED: dict[str, Any] = {**PROTECTED, "deletion_timestamp": NOW}


@pytest.mark.parametrize(
    ("subject", "finalizers", "synced"),
    [
        (volume(), [VOLUME_PROTECTION], True),
        (volume(metadata=PROTECTED), [VOLUME_PROTECTION], False),
        (volume(metadata=DELETED, phase="Bound"), [VOLUME_PROTECTION], True),
        (volume(metadata=DELETED, phase="Released"), None, True),
        (volume(metadata=DELETED, phase="Available"), None, True),
        (
            volume(metadata={"deletion_timestamp": NOW, "finalizers": ["example.com/x"]}),
            ["example.com/x"],
            False,
        ),
    ],
)
def test_the_finalizer_comes_and_goes(
    subject: PersistentVolume, finalizers: list[str] | None, synced: bool
) -> None:
    world = World(subject)
    world.carry_out(PVProtectionController().reconcile(subject.key, world.view()))
    left = world.find(subject)
    assert (None if left is None else left.metadata.finalizers) == finalizers
    assert bool(list(volumes_to_change(Change(None, subject), FakeView()))) == synced


def test_a_volume_that_is_gone_needs_nothing() -> None:
    assert PVProtectionController().reconcile("disk", FakeView()).writes == []
    assert list(volumes_to_change(Change(volume(), None), FakeView())) == []
