"""Which claims and volumes a change touches."""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import (
    StorageClass,
    claim_key_of,
    class_of_volume,
    has_class,
    waits_for_consumer,
)
from kcm.helpers.volumes.binding import (
    VolumeRequest,
    is_fully_bound,
)
from kcm.sdk import BY_CLAIM, BY_VOLUME, BY_WANTED_CLASS, Change, View

_MOST_WOKEN = 5  # claims that one free volume wakes; it can be given to one of them
_MOST_LOOKED_AT = 500  # claims that one free volume is compared with


def of_claim(change: Change, view: View) -> Iterable[str]:
    """Returns the claim's key, and those of the volumes that it has left."""
    old, new = change.old, change.new
    if isinstance(new, PersistentVolumeClaim):
        volume = view.lister(PersistentVolume).find(new.spec.volume_name or "")
        if not _is_settled(new, volume):
            yield new.key
    if not isinstance(old, PersistentVolumeClaim):
        return
    if new is not None and new.uid == old.uid:
        bound_now = isinstance(new, PersistentVolumeClaim) and new.spec.volume_name
        if bound_now and bound_now != old.spec.volume_name:
            yield bound_now
        return
    if old.spec.volume_name:
        yield old.spec.volume_name
        return
    # Volumes of a binding that was cut off.
    for volume in view.lister(PersistentVolume).by_index(BY_CLAIM, old.key):
        if volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == old.uid:
            yield volume.name


def of_volume(change: Change, view: View) -> Iterable[str]:
    """Returns the volume's key, that of its claim, and those of claims that may take it."""
    old, new = change.old, change.new
    if isinstance(new, PersistentVolume):
        owner = view.lister(PersistentVolumeClaim).find(claim_key_of(new))
        if not _is_settled(owner, new):
            yield new.name
    for volume in (old, new):
        if isinstance(volume, PersistentVolume) and volume.spec.claim_ref is not None:
            claim = view.lister(PersistentVolumeClaim).find(claim_key_of(volume))
            if claim is not None and (new is None or not is_fully_bound(claim)):
                yield claim.key
    if new is None:
        yield from _naming(change.object.name, view)
    elif isinstance(new, PersistentVolume) and new.spec.claim_ref is None:
        became_free = not isinstance(old, PersistentVolume) or (
            old.status.phase != new.status.phase or old.spec != new.spec
        )
        if became_free and not new.deleting:
            yield from _naming(new.name, view)
            yield from _takers(new, view)


def _is_settled(claim: PersistentVolumeClaim | None, volume: PersistentVolume | None) -> bool:
    """Reports whether both are bound to each other and say so, which leaves nothing to do."""
    if claim is None or volume is None or volume.spec.claim_ref is None:
        return False
    return (
        is_fully_bound(claim)
        and claim.spec.volume_name == volume.name
        and volume.spec.claim_ref.uid == claim.uid
        and claim.status.phase == volume.status.phase == "Bound"
    )


def _naming(name: str, view: View) -> Iterable[str]:
    """Returns the claims that name the volume of this name."""
    for claim in view.lister(PersistentVolumeClaim).by_index(BY_VOLUME, name):
        yield claim.key


def _takers(volume: PersistentVolume, view: View) -> Iterable[str]:
    """Returns some claims that would take the volume.

    The scheduler chooses for classes that wait for the first consumer. Claims that are not looked
    at here are synced again after --pvclaimbinder-sync-period.
    """
    name = class_of_volume(volume)
    waits = waits_for_consumer(view.lister(StorageClass).find(name))
    if waits or volume.status.phase != "Available":
        return
    claims = view.lister(PersistentVolumeClaim).by_index(BY_WANTED_CLASS, name)
    woken = 0
    for claim in claims[:_MOST_LOOKED_AT]:
        request = VolumeRequest.of(claim)
        if request.takes(volume) and request.could_have(volume):
            woken += 1
            yield claim.key
        if woken == _MOST_WOKEN:
            return


def of_class(change: Change, view: View) -> Iterable[str]:
    """Returns the unbound claims of a new or changed class, and those that name no class."""
    new = change.new
    if not isinstance(new, StorageClass):
        return
    claims = view.lister(PersistentVolumeClaim)
    for claim in claims.by_index(BY_WANTED_CLASS, new.name):
        yield claim.key
    for claim in claims.by_index(BY_WANTED_CLASS, ""):
        if not has_class(claim):
            yield claim.key
