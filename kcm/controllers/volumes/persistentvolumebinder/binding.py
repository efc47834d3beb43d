"""The writes that bind volumes and claims, undo it, and set their phases."""

from __future__ import annotations

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.core_v1.volume_claims import PersistentVolumeClaimStatus
from kcm.api.volumes.local import PROVISIONER
from kcm.helpers.volumes.binding import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    STORAGE_PROVISIONER,
    capacity_of,
    reserve,
)
from kcm.sdk import Plan, Update, UpdateStatus, View, Write


def bind(plan: Plan, volume: PersistentVolume, claim: PersistentVolumeClaim, view: View) -> Plan:
    """Adds the writes that are left to bind both.

    The claim is written only once the volume is saved as its own; a failure ends the plan.
    """
    reserved = reserve(volume, claim)
    phase = _phase_write(reserved, volume, "Bound", view)
    if reserved is not volume:
        plan.then(Update(reserved, volume), *phase, essential=True)
        phase = []
    marked = _marked(claim, volume)
    plan.then(*phase, *([] if marked is claim else [Update(marked, claim)]), essential=True)
    status = bound_status(claim, volume)
    if status != claim.status:
        plan.then(UpdateStatus(marked.with_status(status), claim))
    return plan


def _marked(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """Returns the claim with the volume's name and the marks of a finished binding."""
    marks = dict(claim.annotations)
    changed = claim
    if claim.spec.volume_name != volume.name:
        changed = claim.with_spec(claim.spec.replace(volume_name=volume.name))
        marks.setdefault(BOUND_BY_CONTROLLER, "yes")
    marks.setdefault(BIND_COMPLETED, "yes")
    if volume.annotations.get(PROVISIONED_BY) == PROVISIONER:
        marks.setdefault(BETA_STORAGE_PROVISIONER, PROVISIONER)
        marks.setdefault(STORAGE_PROVISIONER, PROVISIONER)
    return changed if marks == dict(claim.annotations) else changed.with_metadata(annotations=marks)


def bound_status(
    claim: PersistentVolumeClaim, volume: PersistentVolume
) -> PersistentVolumeClaimStatus:
    """Returns the status of a claim that has the volume.

    The size is set once, when the claim becomes bound: later it may differ while a file system
    grows.
    """
    status, modes = claim.status, volume.spec.access_modes
    changes: dict[str, object] = {}
    if status.phase != "Bound":
        changes["phase"] = "Bound"
        if (status.capacity or {}).get("storage") != capacity_of(volume):
            changes["capacity"] = volume.spec.capacity
        name = volume.spec.volume_attributes_class_name
        if name:
            changes["current_volume_attributes_class_name"] = name
    if status.access_modes != modes:
        changes["access_modes"] = modes
    return status.replace(**changes) if changes else status


def set_claim_phase(plan: Plan, claim: PersistentVolumeClaim, phase: str) -> bool:
    """Adds the write of a claim without a volume; reports whether the phase changes."""
    status = claim.status.replace(phase=phase, access_modes=None, capacity=None)
    if status != claim.status:
        plan.then(UpdateStatus(claim.with_status(status), claim))
    return phase != claim.status.phase


def set_volume_phase(
    plan: Plan, volume: PersistentVolume, phase: str, view: View, message: str | None = None
) -> bool:
    """Adds the write of a volume's phase; reports whether it changes."""
    writes = _phase_write(volume, volume, phase, view, message)
    plan.then(*writes, essential=True)
    return bool(writes)


def _phase_write(
    volume: PersistentVolume,
    cached: PersistentVolume,
    phase: str,
    view: View,
    message: str | None = None,
) -> list[Write]:
    if volume.status.phase == phase:
        return []
    moment = view.now.replace(microsecond=0)
    status = volume.status.replace(phase=phase, message=message, last_phase_transition_time=moment)
    return [UpdateStatus(volume.with_status(status), cached)]


def unbind(plan: Plan, volume: PersistentVolume, view: View) -> Plan:
    """Adds the writes that free the volume. One that a user has bound stays reserved by name."""
    reference = volume.spec.claim_ref
    assert reference is not None
    marks = dict(volume.annotations)
    if marks.pop(BOUND_BY_CONTROLLER, None) is not None:
        freed = volume.with_spec(volume.spec.replace(claim_ref=None))
        freed = freed.with_metadata(annotations=marks or None)
    else:
        by_name = reference.replace(uid=None)
        freed = volume.with_spec(volume.spec.replace(claim_ref=by_name))
    plan.then(Update(freed, volume), essential=True)
    return plan.then(*_phase_write(freed, volume, "Available", view), essential=True)
