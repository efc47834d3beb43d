"""PersistentVolumeExpander: makes volumes larger when their claims ask for more.

Folders of kcm.dev/local grow at once, since their size is only recorded. For all others an external
controller is waited for.

Source: pkg/controller/volume/expand/expand_controller.go and
pkg/volume/util/operationexecutor/operation_generator.go, Kubernetes 1.33. Departure: claims of
volumes that have become CSI drivers get no annotation `volume.kubernetes.io/storage-resizer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import claim_key_of
from kcm.api.volumes.local import handle_of
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.volumes.binding import capacity_of, requested
from kcm.sdk import Change, Controller, Event, Outcome, Plan, Update, UpdateStatus, View, Watch

_NOTHING = Quantity(0)
_CONDITIONS = ("Resizing", "FileSystemResizePending")


class PersistentVolumeExpanderController(Controller):
    """Syncs bound claims, one key each."""

    name = "persistentvolume-expander-controller"
    short_name = "persistentvolumeexpander"
    reads = (PersistentVolume,)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(PersistentVolumeClaim, growing_claims),)

    def reconcile(self, key: str, view: View) -> Plan:
        claim = view.lister(PersistentVolumeClaim).find(key)
        if claim is None or not _wants_more(claim):
            return Plan()
        name = claim.spec.volume_name or ""
        volume = view.lister(PersistentVolume).find(name)
        if volume is None:
            missing = f'failed to get PV "{name}": persistentvolumes "{name}" not found'
            return Plan(error=errors.NotFound(missing))
        reference = volume.spec.claim_ref
        if claim_key_of(volume) != key or reference is None or reference.uid != claim.uid:
            text = f"persistent Volume is not bound to PVC being updated : {key}"
            return Plan(error=errors.Conflict(text))
        if handle_of(volume) is not None:
            return _grow(claim, volume)
        plan = Plan()
        plan.record(
            claim,
            "ExternalExpanding",
            "waiting for an external controller to expand this PVC",
            warning=volume.spec.csi is None,  # upstream has found no plugin then
        )
        return plan


def _grow(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Plan:
    """Returns the plan that records the new size, in the volume first."""
    plan, size = Plan(), requested(claim)
    if capacity_of(volume) < size:
        capacity = {**(volume.spec.capacity or {}), "storage": size}
        larger = volume.with_spec(volume.spec.replace(capacity=capacity))
        plan.then(Update(larger, volume), essential=True)
    kept = [c for c in claim.status.conditions or () if c.type not in _CONDITIONS]
    capacity = {**(claim.status.capacity or {}), "storage": size}
    status = claim.status.replace(capacity=capacity, conditions=kept or None)
    plan.then(UpdateStatus(claim.with_status(status), claim), essential=True)
    plan.events_after = lambda outcome: _succeeded(claim, outcome)
    return plan


def _succeeded(claim: PersistentVolumeClaim, outcome: Outcome) -> list[Event]:
    if outcome.failures or outcome.skipped:
        return []
    text = f"ExpandVolume succeeded for volume {claim.key}"
    return [Event(claim, "Normal", "VolumeResizeSuccessful", text)]


def _wants_more(claim: PersistentVolumeClaim) -> bool:
    has = (claim.status.capacity or {}).get("storage", _NOTHING)
    return claim.status.phase == "Bound" and requested(claim) > has


def growing_claims(change: Change, view: View) -> Iterable[str]:
    """Returns the key of a bound claim that asks for more than it has, when that is new."""
    old, new = change.old, change.new
    if not isinstance(new, PersistentVolumeClaim) or not _wants_more(new):
        return
    grew_already = isinstance(old, PersistentVolumeClaim) and _wants_more(old)
    if not grew_already or (
        isinstance(old, PersistentVolumeClaim) and requested(new) > requested(old)
    ):
        yield new.key
