"""VACProtection: keeps a deleted VolumeAttributesClass while a claim or a volume names it.

Source: pkg/controller/volume/vacprotection/vac_protection_controller.go, Kubernetes 1.33.
Departure: claims and volumes are looked through when a class is being deleted; upstream keeps an
index of them at all times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import VolumeAttributesClass
from kcm.api.volumes.finalizers import ATTRIBUTES_CLASS_PROTECTION
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.helpers.volumes.protection import is_deletion_candidate, needs_finalizer, protect
from kcm.sdk import Change, Controller, Plan, View, Watch


class VACProtectionController(Controller):
    """Syncs VolumeAttributesClasses, one key each."""

    name = "volumeattributesclass-protection-controller"
    short_name = "volumeattributesclassprotection"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(VolumeAttributesClass, classes_to_change),
            Watch(PersistentVolumeClaim, classes_left),
            Watch(PersistentVolume, classes_left),
        )

    def reconcile(self, key: str, view: View) -> Plan:
        attributes = view.lister(VolumeAttributesClass).find(key)
        if attributes is None:
            return Plan()
        in_use = is_deletion_candidate(attributes, ATTRIBUTES_CLASS_PROTECTION) and any(
            key in names_of(user) for user in _users(view)
        )
        return protect(attributes, ATTRIBUTES_CLASS_PROTECTION, in_use=in_use)


def _users(view: View) -> Iterable[KubeObject]:
    yield from view.lister(PersistentVolume).list()
    yield from view.lister(PersistentVolumeClaim).list()


def names_of(user: KubeObject) -> set[str]:
    """Returns the classes that a claim or a volume names."""
    names: set[str | None] = set()
    if isinstance(user, PersistentVolume):
        names.add(user.spec.volume_attributes_class_name)
    if isinstance(user, PersistentVolumeClaim):
        names.add(user.spec.volume_attributes_class_name)
        names.add(user.status.current_volume_attributes_class_name)
        modification = user.status.modify_volume_status
        if modification is not None:
            names.add(modification.target_volume_attributes_class_name)
    return {name for name in names if name}


def classes_to_change(change: Change, view: View) -> Iterable[str]:
    """Returns the class's key if its finalizer has to come or may have to go."""
    attributes = change.new
    if attributes is not None and (
        needs_finalizer(attributes, ATTRIBUTES_CLASS_PROTECTION)
        or is_deletion_candidate(attributes, ATTRIBUTES_CLASS_PROTECTION)
    ):
        yield attributes.key


def classes_left(change: Change, view: View) -> Iterable[str]:
    """Returns the classes that the claim or volume names no longer."""
    if change.old is None:
        return
    now = set() if change.new is None else names_of(change.new)
    yield from sorted(names_of(change.old) - now)
