"""The sync of one volume: its phase, and what becomes of it when its claim is gone."""

from __future__ import annotations

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import claim_key_of
from kcm.api.volumes.local import PROVISIONER
from kcm.controllers.volumes.persistentvolumebinder.binding import set_volume_phase, unbind
from kcm.helpers.volumes.binding import MIGRATED_TO, PROVISIONED_BY, same_mode
from kcm.sdk import Delete, DeleteOptions, Plan, View

_INTERNAL = "kubernetes.io/"  # provisioners of this domain are part of upstream


def sync(volume: PersistentVolume, view: View) -> Plan:
    """Returns what to do for a volume."""
    plan = Plan()
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        set_volume_phase(plan, volume, "Available", view)
        return plan
    claim = view.lister(PersistentVolumeClaim).find(claim_key_of(volume))
    if claim is None or claim.uid != reference.uid:
        return _reclaim(plan, volume, view)
    if not claim.spec.volume_name:
        if not same_mode(volume, claim):
            _tell_mismatch(plan, volume, claim)
        return plan  # the sync of the claim, which the same change has asked for, goes on
    if claim.spec.volume_name == volume.name:
        set_volume_phase(plan, volume, "Bound", view)
        return plan
    made_for_it = PROVISIONED_BY in volume.annotations
    if made_for_it and volume.spec.persistent_volume_reclaim_policy == "Delete":
        return _reclaim(plan, volume, view)
    return unbind(plan, volume, view)


def _tell_mismatch(plan: Plan, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
    """Says that a volume is for a claim that wants another mode, which nobody can bind."""
    why = "due to incompatible volumeMode."
    reason = "VolumeMismatch"
    text = f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim.name}" {why}'
    plan.record(volume, reason, text, warning=True)
    text = f'Cannot bind PersistentVolume "{volume.name}" to requested PersistentVolumeClaim {why}'
    plan.record(claim, reason, text, warning=True)


def _reclaim(plan: Plan, volume: PersistentVolume, view: View) -> Plan:
    """Releases the volume, and deletes it if that is its policy and kcm's to do."""
    if volume.status.phase not in ("Released", "Failed"):
        set_volume_phase(plan, volume, "Released", view)
    policy = volume.spec.persistent_volume_reclaim_policy
    if policy == "Retain":
        return plan
    if policy == "Recycle":
        text = "No recycler plugin found for the volume!"
        return _fail(plan, volume, "VolumeFailedRecycle", text, view)
    if policy != "Delete":
        text = "Volume has unrecognized PersistentVolumeReclaimPolicy"
        return _fail(plan, volume, "VolumeUnknownReclaimPolicy", text, view)
    return _delete(plan, volume, view)


def _delete(plan: Plan, volume: PersistentVolume, view: View) -> Plan:
    provisioner = volume.annotations.get(PROVISIONED_BY, "")
    if provisioner == PROVISIONER:
        if not volume.deleting:
            plan.then(Delete(volume, DeleteOptions(uid=volume.uid)))
        return plan
    external = provisioner and not provisioner.startswith(_INTERNAL)
    if external or MIGRATED_TO in volume.annotations or volume.spec.csi is not None:
        return plan  # whoever provisioned it deletes it
    if provisioner:
        why = f"no volume plugin matched name: {provisioner}"
    else:
        why = (
            f'error getting deleter volume plugin for volume "{volume.name}": '
            "no deletable volume plugin matched"
        )
    return _fail(plan, volume, "VolumeFailedDelete", why, view)


def _fail(plan: Plan, volume: PersistentVolume, reason: str, text: str, view: View) -> Plan:
    """Marks the volume as failed, and says why when that is new."""
    if set_volume_phase(plan, volume, "Failed", view, text):
        plan.record(volume, reason, text, warning=True)
    return plan
