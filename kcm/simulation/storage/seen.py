"""What the simulator remembers of claims, volumes, attachments and drivers: only what it asks.

Objects are read as JSON from the watch. One that cannot be read is treated as deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import structlog

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.scheme import Resource
from kcm.api.simulated import DRIVER
from kcm.api.storage_v1 import CSIDriver, VolumeAttachment, claim_key_of
from kcm.api.volumes.attachments import unique_volume_name
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.helpers.volumes.binding import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    STORAGE_PROVISIONER,
)
from kcm.store import damage

log = structlog.get_logger("kcm.nodes")

CLAIMS = PersistentVolumeClaim.resource
VOLUMES = PersistentVolume.resource
ATTACHMENTS = VolumeAttachment.resource
DRIVERS = CSIDriver.resource
KINDS: tuple[Resource, ...] = (DRIVERS, VOLUMES, CLAIMS, ATTACHMENTS)


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A claim, and the name of its volume, "" if it has none."""

    uid: str
    volume: str
    bound: bool
    wanted: bool  # whether the driver has to make a volume for it


@dataclass(frozen=True, slots=True)
class SeenVolume:
    """A volume of any kind. `unique_name` is "" for those of no CSI driver."""

    unique_name: str
    driver: str
    claim: str  # the key of the claim that it is reserved for
    claim_uid: str
    unwanted: bool  # whether the driver has to delete it
    deleting: bool


@dataclass(frozen=True, slots=True)
class SeenAttachment:
    """A VolumeAttachment of the simulated driver."""

    volume: str
    node: str
    attached: bool
    deleting: bool


@dataclass(slots=True)
class SeenStorage:
    """All that the simulator knows of storage, by key."""

    claims: dict[str, SeenClaim] = field(default_factory=dict)
    volumes: dict[str, SeenVolume] = field(default_factory=dict)
    attachments: dict[str, SeenAttachment] = field(default_factory=dict)
    unattached_drivers: set[str] = field(default_factory=set)  # whose volumes are not attached
    # the keys of attachments, by volume and by node
    attached_to: dict[str, set[str]] = field(default_factory=dict)
    attached_on: dict[str, set[str]] = field(default_factory=dict)

    def put(self, resource: Resource, key: str, raw: bytes) -> KubeObject | None:
        """Remembers a written object and returns it, None if it cannot be read."""
        try:
            obj = damage.decode_object(resource, key, raw)
        except errors.Damaged as error:  # others are not affected
            log.warning("An object cannot be read", key=key, error=error.message)
            self.drop(resource, key)
            return None
        if isinstance(obj, PersistentVolumeClaim):
            self.claims[key] = _see_claim(obj)
        elif isinstance(obj, PersistentVolume):
            self.volumes[key] = _see_volume(obj)
        elif isinstance(obj, VolumeAttachment):
            self._put_attachment(key, obj)
        elif isinstance(obj, CSIDriver):
            attached = obj.spec.attach_required is not False
            (self.unattached_drivers.discard if attached else self.unattached_drivers.add)(key)
        return obj

    def _put_attachment(self, key: str, obj: VolumeAttachment) -> None:
        self.drop(ATTACHMENTS, key)
        if obj.spec.attacher != DRIVER:
            return
        volume = obj.spec.source.persistent_volume_name or ""
        status = obj.status
        self.attachments[key] = SeenAttachment(
            volume, obj.spec.node_name, bool(status.attached), obj.deleting
        )
        self.attached_to.setdefault(volume, set()).add(key)
        self.attached_on.setdefault(obj.spec.node_name, set()).add(key)

    def drop(self, resource: Resource, key: str) -> None:
        """Forgets a deleted object."""
        if resource is CLAIMS:
            self.claims.pop(key, None)
        elif resource is VOLUMES:
            self.volumes.pop(key, None)
        elif resource is DRIVERS:
            self.unattached_drivers.discard(key)
        elif (attachment := self.attachments.pop(key, None)) is not None:
            _remove(self.attached_to, attachment.volume, key)
            _remove(self.attached_on, attachment.node, key)

    def forget_missing(self, resource: Resource, present: Iterable[str]) -> None:
        """Forgets the objects of a kind whose keys are not in `present`, the keys of a list."""
        seen: dict[Resource, set[str]] = {
            CLAIMS: set(self.claims),
            VOLUMES: set(self.volumes),
            ATTACHMENTS: set(self.attachments),
            DRIVERS: set(self.unattached_drivers),
        }
        for key in seen[resource] - set(present):
            self.drop(resource, key)


def _remove(index: dict[str, set[str]], name: str, key: str) -> None:
    index[name].discard(key)
    if not index[name]:
        del index[name]


def _see_claim(claim: PersistentVolumeClaim) -> SeenClaim:
    notes = claim.annotations
    provisioner = notes.get(STORAGE_PROVISIONER) or notes.get(BETA_STORAGE_PROVISIONER)
    volume = claim.spec.volume_name or ""
    wanted = provisioner == DRIVER and not volume and not claim.deleting
    return SeenClaim(claim.uid, volume, claim.status.phase == "Bound", wanted)


def _see_volume(volume: PersistentVolume) -> SeenVolume:
    csi, reference = volume.spec.csi, volume.spec.claim_ref
    ours = csi is not None and csi.driver == DRIVER
    unwanted = (
        ours
        and volume.annotations.get(PROVISIONED_BY) == DRIVER
        and volume.status.phase == "Released"
        and volume.spec.persistent_volume_reclaim_policy == "Delete"
    )
    return SeenVolume(
        unique_volume_name(volume),
        csi.driver if csi is not None else "",
        claim_key_of(volume),
        (reference.uid or "") if reference is not None else "",
        unwanted,
        volume.deleting,
    )
