"""Which volume fits which claim, and what it means that they are bound.

The binder and the scheduler share these rules.

Source: staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.core_v1.events import ObjectReference
from kcm.api.storage_v1 import claim_key_of, class_of_claim, class_of_volume
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.nodeaffinity import Term

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"  # the CSI driver that took over a volume
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
_NOTHING = Quantity(0)
_FILESYSTEM = "Filesystem"


def requested(claim: PersistentVolumeClaim) -> Quantity:
    """Returns the size that the claim asks for."""
    return (claim.spec.resources.requests or {}).get("storage", _NOTHING)


def capacity_of(volume: PersistentVolume) -> Quantity:
    """Returns the size of the volume."""
    return (volume.spec.capacity or {}).get("storage", _NOTHING)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Reports whether the claim has its volume, and the binder has finished."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations


@dataclass(frozen=True, slots=True)
class ClaimState:
    """What of a claim decides whether pods that wait for it can run."""

    uid: str
    bound: bool
    usable: bool  # neither lost nor being deleted
    storage_class: str
    node: str  # where its volume is to be made, "" if that is open

    @classmethod
    def of(cls, claim: PersistentVolumeClaim) -> ClaimState:
        return cls(
            claim.uid,
            is_fully_bound(claim),
            claim.status.phase != "Lost" and not claim.deleting,
            class_of_claim(claim),
            claim.annotations.get(SELECTED_NODE, ""),
        )

    def may_help(self, before: ClaimState | None) -> bool:
        """Reports whether a change from `before` may help a pod. A chosen node alone does not."""
        if before is None:
            return True
        return self != before and (before.node != "" or replace(self, node="") != before)


def is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Reports whether the volume is bound to the claim, or reserved for it by name."""
    reference = volume.spec.claim_ref
    if reference is None or claim_key_of(volume) != claim.key:
        return False
    return not reference.uid or reference.uid == claim.uid


def has_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Reports whether the volume has every access mode that the claim asks for."""
    return set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())


def same_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Reports whether both are file systems, or both are block devices."""
    return (volume.spec.volume_mode or _FILESYSTEM) == (claim.spec.volume_mode or _FILESYSTEM)


def same_attributes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Reports whether both have the same VolumeAttributesClass, or none."""
    has, wants = volume.spec.volume_attributes_class_name, claim.spec.volume_attributes_class_name
    return (has or "") == (wants or "")


def reaches(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Reports whether a node with these labels can reach the volume."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(Term.of(term).matches(labels, "") for term in affinity.required.node_selector_terms)


@dataclass(frozen=True)
class VolumeRequest:
    """What a claim asks of a volume, in a form that is quick to compare with many volumes."""

    claim: PersistentVolumeClaim
    size: Quantity
    storage_class: str
    selector: Selector | None

    @classmethod
    def of(cls, claim: PersistentVolumeClaim) -> VolumeRequest:
        chosen = claim.spec.selector
        try:
            selector = None if chosen is None else Selector.from_label_selector(chosen)
        except errors.BadRequest:
            selector = Selector.nothing()
        return cls(claim, requested(claim), class_of_claim(claim), selector)

    @property
    def terms(self) -> Hashable:
        """A value that is equal for claims that ask for the same of a free volume."""
        spec = self.claim.spec
        return (
            self.size,
            self.storage_class,
            self.selector,
            frozenset(spec.access_modes or ()),
            spec.volume_mode or _FILESYSTEM,
            spec.volume_attributes_class_name or "",
        )

    def could_have(self, volume: PersistentVolume) -> bool:
        """Reports whether the volume is free for the claim and is as it wants it.

        Its phase, class, labels and nodes are not looked at: they do not count for a volume that
        is for this claim.
        """
        claim = self.claim
        if volume.spec.claim_ref is not None and not is_for(volume, claim):
            return False
        if capacity_of(volume) < self.size or not same_mode(volume, claim):
            return False
        return not volume.deleting and same_attributes(volume, claim)

    def takes(self, volume: PersistentVolume) -> bool:
        """Reports whether the claim takes this free volume, by its phase, labels and class."""
        if volume.status.phase != "Available" or class_of_volume(volume) != self.storage_class:
            return False
        return self.selector is None or self.selector.matches(volume.labels)


def find_volume(
    request: VolumeRequest, volumes: Iterable[PersistentVolume], *, delayed: bool = False
) -> PersistentVolume | None:
    """Returns the volume that is for the claim, else the smallest that fits, or None.

    With `delayed`, only a volume that is for the claim counts: the scheduler chooses among others.
    """
    best: PersistentVolume | None = None
    for volume in volumes:
        if not request.could_have(volume):
            continue
        if is_for(volume, request.claim):
            return volume
        if delayed or not request.takes(volume) or not has_modes(volume, request.claim):
            continue
        if best is None or capacity_of(volume) < capacity_of(best):
            best = volume
    return best


def reserve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Returns the volume with a reference to the claim; the volume itself if it has it.

    A volume that a user has reserved for the claim is not marked as bound by the controller.
    """
    present = volume.spec.claim_ref
    changed = volume
    by_user = is_for(volume, claim)
    if present is None or claim_key_of(volume) != claim.key or present.uid != claim.uid:
        changed = volume.with_spec(volume.spec.replace(claim_ref=reference_to(claim)))
    if not by_user and BOUND_BY_CONTROLLER not in volume.annotations:
        changed = changed.with_metadata(
            annotations={**volume.annotations, BOUND_BY_CONTROLLER: "yes"}
        )
    return changed


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """Returns a reference to this version of the claim."""
    return ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )
