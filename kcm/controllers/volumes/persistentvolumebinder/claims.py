"""The sync of one claim: finds a volume for it, or has one made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.storage_v1 import (
    StorageClass,
    claim_key_of,
    class_of_claim,
    class_of_volume,
    default_of,
    has_class,
    waits_for_consumer,
)
from kcm.controllers.volumes.persistentvolumebinder.binding import bind, set_claim_phase
from kcm.controllers.volumes.persistentvolumebinder.provisioning import provision
from kcm.helpers.pods import is_terminal
from kcm.helpers.volumes.binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    VolumeRequest,
    capacity_of,
    find_volume,
    has_modes,
    is_for,
    requested,
    same_attributes,
    same_mode,
)
from kcm.sdk import BY_CLAIM, Plan, Update, View

LATER = 1.0  # set where nothing else would wake the claim; the controller knows the period


def sync(claim: PersistentVolumeClaim, view: View, *, provisions: bool = True) -> Plan:
    """Returns what to do for a claim. Where `requeue_after` is set, its value has no meaning."""
    if BIND_COMPLETED in claim.annotations:
        return _sync_bound(claim, view)
    if claim.spec.volume_name:
        return _sync_prebound(claim, view)
    if claim.deleting:
        return Plan()
    storage_class = view.lister(StorageClass).find(class_of_claim(claim))
    delayed = waits_for_consumer(storage_class)
    volume = find_best(claim, _volumes_for(claim, view, delayed), delayed=delayed)
    if volume is not None:
        return bind(Plan(), volume, claim, view)
    default = None if has_class(claim) else default_of(view.lister(StorageClass).list())
    if default is not None:
        classed = claim.with_spec(claim.spec.replace(storage_class_name=default.name))
        return Plan().then(Update(classed, claim))
    plan = Plan()
    if delayed and SELECTED_NODE not in claim.annotations:
        _record_waiting(plan, claim, view)
    elif class_of_claim(claim):
        return provision(claim, storage_class, view) if provisions else plan
    else:
        text = "no persistent volumes available for this claim and no storage class is set"
        plan.record(claim, "FailedBinding", text)
        plan.requeue_after = LATER
    set_claim_phase(plan, claim, "Pending")
    return plan


def _volumes_for(
    claim: PersistentVolumeClaim, view: View, delayed: bool
) -> Sequence[PersistentVolume]:
    """Returns the volumes for the claim, and the free ones unless the scheduler chooses."""
    volumes = view.lister(PersistentVolume)
    reserved = volumes.by_index(BY_CLAIM, claim.key)
    return reserved if delayed else [*reserved, *volumes.by_index(BY_CLAIM, "")]


def find_best(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, delayed: bool
) -> PersistentVolume | None:
    """Returns the best volume for the claim, or None.

    Volumes with fewer access modes come first: they can do less for others.
    """
    request = VolumeRequest.of(claim)
    by_modes: dict[frozenset[str], list[PersistentVolume]] = {}
    for volume in volumes:
        if has_modes(volume, claim) and request.could_have(volume):
            by_modes.setdefault(frozenset(volume.spec.access_modes or ()), []).append(volume)
    for modes in sorted(by_modes, key=lambda modes: (len(modes), sorted(modes))):
        match = find_volume(request, by_modes[modes], delayed=delayed)
        if match is not None:
            return match
    return None


def _record_waiting(plan: Plan, claim: PersistentVolumeClaim, view: View) -> None:
    """Says what the claim waits for: a pod, or the scheduling of the pods that use it."""
    names = sorted(
        pod.name
        for pod in view.lister(Pod).by_index(BY_CLAIM, claim.key)
        if not pod.spec.node_name and not is_terminal(pod)
    )
    if not names:
        text = "waiting for first consumer to be created before binding"
        plan.record(claim, "WaitForFirstConsumer", text)
        return
    pods = "pod" if len(names) == 1 else "pods"
    text = f"waiting for {pods} {','.join(names)} to be scheduled"
    plan.record(claim, "WaitForPodScheduled", text)


# --- claims that name their volume


def _sync_prebound(claim: PersistentVolumeClaim, view: View) -> Plan:
    """Binds a claim that names a volume, as soon as that is free and fits."""
    plan = Plan()
    volume = view.lister(PersistentVolume).find(claim.spec.volume_name or "")
    if volume is None:
        set_claim_phase(plan, claim, "Pending")
        return plan
    if volume.spec.claim_ref is None:
        why = _mismatch(volume, claim)
        if not why:
            return bind(plan, volume, claim, view)
        text = f'Cannot bind to requested volume "{volume.name}": {why}'
        plan.record(claim, "VolumeMismatch", text, warning=True)
        set_claim_phase(plan, claim, "Pending")
        return plan
    if is_for(volume, claim):
        return bind(plan, volume, claim, view)
    text = f'volume "{volume.name}" already bound to a different claim.'
    plan.record(claim, "FailedBinding", text, warning=True)
    if BOUND_BY_CONTROLLER in claim.annotations:
        owner = claim_key_of(volume)
        plan.error = errors.Conflict(
            f'invalid binding of claim "{claim.key}" to volume "{volume.name}": volume already '
            f'claimed by "{owner}"'
        )
        return plan
    set_claim_phase(plan, claim, "Pending")
    return plan


def _mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Returns why the claim cannot have the volume that it names, "" if it can."""
    if volume.deleting:
        return f'the volume is marked for deletion "{volume.name}"'
    if capacity_of(volume) < requested(claim):
        return "requested PV is too small"
    if class_of_volume(volume) != class_of_claim(claim):
        return "storageClassName does not match"
    if not same_attributes(volume, claim):
        return "volumeAttributesClassName does not match"
    if not same_mode(volume, claim):
        return "incompatible volumeMode"
    return "" if has_modes(volume, claim) else "incompatible accessMode"


# --- claims that were bound once


def _sync_bound(claim: PersistentVolumeClaim, view: View) -> Plan:
    """Keeps a binding, or says that the claim has lost its volume."""
    if not claim.spec.volume_name:
        why = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        return _lose(claim, "ClaimLost", why)
    volume = view.lister(PersistentVolume).find(claim.spec.volume_name)
    if volume is None:
        why = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        return _lose(claim, "ClaimLost", why)
    reference = volume.spec.claim_ref
    if reference is None or reference.uid == claim.uid:
        return bind(Plan(), volume, claim, view)
    why = "Two claims are bound to the same volume, this one is bound incorrectly"
    return _lose(claim, "ClaimMisbound", why)


def _lose(claim: PersistentVolumeClaim, reason: str, text: str) -> Plan:
    plan = Plan()
    if claim.status.phase == "Lost":
        return plan
    set_claim_phase(plan, claim, "Lost")
    return plan.record(claim, reason, text, warning=True)
