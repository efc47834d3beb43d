"""Classes of attributes stay while a claim or a volume names them.

The cases are those of TestVACProtectionController in
pkg/controller/volume/vacprotection/vac_protection_controller_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1.volume_claims import ModifyVolumeStatus
from kcm.api.storage_v1 import VolumeAttributesClass
from kcm.api.volumes.finalizers import ATTRIBUTES_CLASS_PROTECTION
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.controllers.volumes.volumeattributesclassprotection import (
    VACProtectionController,
    classes_left,
    classes_to_change,
)
from kcm.reconcile.contract import Change
from kcm.testing.storage_builders import claim, volume
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World


def attributes(*, deleted: bool = False, protected: bool = True) -> VolumeAttributesClass:
    meta: dict[str, Any] = {"name": "gold", "uid": "u", "resource_version": "1"}
    if protected:
        meta["finalizers"] = [ATTRIBUTES_CLASS_PROTECTION]
    if deleted:
        meta["deletion_timestamp"] = NOW
    return VolumeAttributesClass(
        metadata=ObjectMeta(**meta), driver_name="a.b", parameters={"iops": "1"}
    )


def after(subject: VolumeAttributesClass, *others: KubeObject) -> list[str] | None:
    """The finalizers of the class after a sync; None if it is gone."""
    world = World(subject, *others)
    world.carry_out(VACProtectionController().reconcile("gold", world.view()))
    left = world.find(subject)
    return None if left is None else left.metadata.finalizers


USERS = [
    volume(volume_attributes_class_name="gold"),
    claim(volume_attributes_class_name="gold"),
    claim(status={"current_volume_attributes_class_name": "gold"}),
    claim(status={
        "modify_volume_status": ModifyVolumeStatus(target_volume_attributes_class_name="gold")
    }),
]  # fmt: skip


def test_a_class_gets_the_finalizer() -> None:
    assert after(attributes(protected=False)) == [ATTRIBUTES_CLASS_PROTECTION]
    assert after(attributes()) == [ATTRIBUTES_CLASS_PROTECTION]


@pytest.mark.parametrize("user", USERS)
def test_a_deleted_class_stays_while_it_is_named(user: KubeObject) -> None:
    assert after(attributes(deleted=True), user) == [ATTRIBUTES_CLASS_PROTECTION]
    assert list(classes_left(Change(user, None), FakeView())) == ["gold"]
    assert list(classes_left(Change(user, user), FakeView())) == []
    assert list(classes_left(Change(None, user), FakeView())) == []


def test_a_deleted_class_that_nobody_names_goes() -> None:
    assert after(attributes(deleted=True)) is None
    assert after(attributes(deleted=True), claim(volume_attributes_class_name="silver")) is None


def test_only_classes_whose_finalizer_may_change_are_synced() -> None:
    view = FakeView()
    assert list(classes_to_change(Change(None, attributes()), view)) == []
    assert list(classes_to_change(Change(None, attributes(protected=False)), view)) == ["gold"]
    assert list(classes_to_change(Change(None, attributes(deleted=True)), view)) == ["gold"]
