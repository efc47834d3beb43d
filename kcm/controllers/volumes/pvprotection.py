"""PVProtection: keeps a deleted volume while it is bound to a claim.

Source: pkg/controller/volume/pvprotection/pv_protection_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.core_v1 import PersistentVolume
from kcm.api.volumes.finalizers import VOLUME_PROTECTION
from kcm.helpers.volumes.protection import is_deletion_candidate, needs_finalizer, protect
from kcm.sdk import Change, Controller, Plan, View, Watch


class PVProtectionController(Controller):
    """Syncs volumes, one key each."""

    name = "persistentvolume-protection-controller"
    short_name = "pvprotection"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(PersistentVolume, volumes_to_change),)

    def reconcile(self, key: str, view: View) -> Plan:
        volume = view.lister(PersistentVolume).find(key)
        if volume is None:
            return Plan()
        return protect(volume, VOLUME_PROTECTION, in_use=volume.status.phase == "Bound")


def volumes_to_change(change: Change, view: View) -> Iterable[str]:
    """Returns the volume's key if its finalizer has to come or may have to go."""
    volume = change.new
    if volume is not None and (
        needs_finalizer(volume, VOLUME_PROTECTION)
        or is_deletion_candidate(volume, VOLUME_PROTECTION)
    ):
        yield volume.key
