"""Claims, volumes and classes as one pass of a scheduler sees them.

Guarantees: what the pass decides about a volume or a claim, later pods of the pass see, although it
is not written yet.

Source: pkg/scheduler/framework/plugins/volumebinding/{binder,assume_cache}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Set

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import (
    NO_PROVISIONER,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    claim_key_of,
    class_of_claim,
)
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import Quantity
from kcm.controllers.scheduler import status
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.volumes.free import FreeVolumes
from kcm.helpers.volumes.binding import SELECTED_NODE, VolumeRequest, is_for, reaches, requested
from kcm.sdk import BY_CLAIM, BY_NODE, View

STORAGE_KINDS: tuple[type[KubeObject], ...] = (
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
)
"""What the scheduler reads for pods with claims."""

_NO_LIMITS: Mapping[str, int] = {}

Handle = tuple[str, str]  # a CSI driver, and what it calls a volume


class StorageView:
    """What the volume filters ask, for one pass."""

    def __init__(self, view: View, snapshot: Snapshot) -> None:
        self._view = view
        self._snapshot = snapshot
        self._claims = view.lister(PersistentVolumeClaim)
        self._volumes = view.lister(PersistentVolume)
        self._classes = view.lister(StorageClass)
        self._changed_claims: dict[str, PersistentVolumeClaim] = {}
        self._changed_volumes: dict[str, PersistentVolume] = {}
        self._free: dict[Hashable, FreeVolumes] = {}  # by the terms of the wish
        self._limits: dict[str, Mapping[str, int]] | None = None  # by node and driver
        self._reserved: dict[str, list[PersistentVolume]] = {}  # by claim
        self._handles: dict[str, Handle | None] = {}  # by claim
        self._attached: dict[str, frozenset[Handle]] = {}  # by node

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        return self._changed_claims.get(key) or self._claims.find(key)

    def volume(self, name: str) -> PersistentVolume | None:
        return self._changed_volumes.get(name) or self._volumes.find(name)

    def storage_class(self, name: str) -> StorageClass | None:
        return self._classes.find(name)

    def assume_claim(self, claim: PersistentVolumeClaim) -> None:
        """Shows the claim as the pass changes it."""
        self._changed_claims[claim.key] = claim

    def assume_volume(self, volume: PersistentVolume) -> None:
        """Shows the volume as the pass changes it: reserved for a claim."""
        self._changed_volumes[volume.name] = volume
        self._reserved.setdefault(claim_key_of(volume), []).append(volume)

    def volumes_for(self, key: str) -> Sequence[PersistentVolume]:
        """Returns the volumes that are reserved for the claim of this key."""
        assumed = self._reserved.get(key, ())
        cached = self._volumes.by_index(BY_CLAIM, key)
        return [*assumed, *(v for v in cached if v.name not in self._changed_volumes)]

    def free_volumes(self, wish: VolumeRequest) -> FreeVolumes:
        """Returns the free volumes that fit the wish. Equal wishes share one answer."""
        free = self._free.get(wish.terms)
        if free is None:
            free = FreeVolumes(wish, self._volumes.by_index(BY_CLAIM, ""))
            self._free[wish.terms] = free
        return free

    def smallest(
        self, free: FreeVolumes, labels: Mapping[str, str], excluded: Collection[str]
    ) -> PersistentVolume | None:
        """Returns the smallest of the volumes that a node with these labels reaches, or None.

        What this pass has given away is left out, and so are the volumes named by `excluded`.
        """
        return free.find(labels, self._changed_volumes, excluded)

    # --- who uses what

    def is_used_by_another(self, key: str, info: PodInfo) -> bool:
        """Reports whether another pod that is on a node uses the claim."""
        for user in self._snapshot.claim_users.get(key, {}).values():
            node = self._snapshot.by_name.get(user.node)
            # A pod that preemption takes away for a trial is not among the node's.
            if user.uid != info.uid and node is not None and user.uid in node.pods:
                return True
        return False

    def limits_of(self, node: str) -> Mapping[str, int]:
        """Returns the most volumes of the node by driver, for drivers that have a limit."""
        if self._limits is None:
            self._limits = {one.name: _limits(one) for one in self._view.lister(CSINode).list()}
        return self._limits.get(node, _NO_LIMITS)

    def handles_on(self, node: NodeInfo) -> Set[Handle]:
        """Returns the volumes of CSI drivers that the node's pods use, and those that are attached
        to it.
        """
        attached = self._attached.get(node.name)
        if attached is None:
            attached = self._attached[node.name] = frozenset(self._attached_to(node.name))
        handles = {self._handle_of_key(key) for key in node.claims}
        return attached.union(handle for handle in handles if handle is not None)

    def _handle_of_key(self, key: str) -> Handle | None:
        """Returns the handle of a claim, which nothing that the pass reserves changes."""
        if key not in self._handles:
            claim = self.claim(key)
            self._handles[key] = None if claim is None else self.handle_of(claim)
        return self._handles[key]

    def _attached_to(self, node: str) -> Iterator[Handle]:
        for attachment in self._view.lister(VolumeAttachment).by_index(BY_NODE, node):
            volume = self.volume(attachment.spec.source.persistent_volume_name or "")
            if volume is not None and volume.spec.csi is not None:
                yield volume.spec.csi.driver, volume.spec.csi.volume_handle

    def handle_of(self, claim: PersistentVolumeClaim) -> Handle | None:
        """Returns driver and name of the claim's volume; None if it is of no CSI driver.

        A claim without a volume counts for its class' provisioner, under its own name.
        """
        volume = self.volume(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            csi = volume.spec.csi
            return None if csi is None else (csi.driver, csi.volume_handle)
        storage_class = self.storage_class(class_of_claim(claim))
        return None if storage_class is None else (storage_class.provisioner, claim.key)

    def rooms(self, storage_class: StorageClass, size: Quantity) -> Sequence[Selector] | None:
        """Returns selectors of the nodes for which a volume of this size can be made.

        Returns None for a driver that does not publish its capacities: every node will do.
        """
        driver = self._view.lister(CSIDriver).find(storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        selectors: list[Selector] = []
        for capacity in self._view.lister(CSIStorageCapacity).list():
            limit = capacity.maximum_volume_size or capacity.capacity
            if capacity.storage_class_name != storage_class.name or limit is None or limit < size:
                continue
            selectors += _selectors(capacity)
        return selectors


def _limits(csi_node: CSINode) -> Mapping[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _selectors(capacity: CSIStorageCapacity) -> Sequence[Selector]:
    """Returns the selector of the capacity's nodes; none if it has none or a broken one."""
    if capacity.node_topology is None:
        return ()
    try:
        return (Selector.from_label_selector(capacity.node_topology),)
    except errors.BadRequest:
        return ()


# --- The choice of a volume, node by node, for a claim that waits for its first consumer.
#
# What does not depend on the node is computed once for a pod.
#
# Source: pkg/scheduler/framework/plugins/volumebinding/binder.go (findMatchingVolumes,
# checkVolumeProvisions), Kubernetes 1.33.


class ClaimSearch:
    """Finds a volume for one claim, or says whether one can be made."""

    def __init__(self, claim: PersistentVolumeClaim, storage: StorageView) -> None:
        self.claim = claim
        self._node = claim.annotations.get(SELECTED_NODE)
        self._request = VolumeRequest.of(claim)
        self._storage = storage
        self._reserved = None if self._node is not None else self._find_reserved()
        self._free = storage.free_volumes(self._request)
        storage_class = storage.storage_class(class_of_claim(claim))
        provisions = storage_class is not None and storage_class.provisioner not in (
            "",
            NO_PROVISIONER,
        )
        self._class = storage_class if provisions else None
        self._rooms = storage.rooms(self._class, requested(claim)) if self._class else None

    def _find_reserved(self) -> PersistentVolume | None:
        """Returns the volume that is for the claim already."""
        for volume in self._storage.volumes_for(self.claim.key):
            if is_for(volume, self.claim) and self._request.could_have(volume):
                return volume
        return None

    def find(self, node: NodeInfo, excluded: Collection[str]) -> PersistentVolume | None:
        """Returns the volume that the claim gets on the node, None if there is none yet."""
        if self._node is not None:
            return None
        if self._reserved is not None and self._reserved.name not in excluded:
            return self._reserved if reaches(self._reserved, node.labels) else None
        return self._storage.smallest(self._free, node.labels, excluded)

    def explain_no_volume(self, node: NodeInfo) -> str:
        """Returns why no volume can be made for the claim on the node, "" if one can."""
        if self._node is not None and self._node != node.name:
            return status.NO_VOLUME
        if self._class is None or not _allows(self._class, node.labels):
            return status.NO_VOLUME
        if self._rooms is None or any(room.matches(node.labels) for room in self._rooms):
            return ""
        return status.NO_SPACE


def _allows(storage_class: StorageClass, labels: Mapping[str, str]) -> bool:
    """Reports whether the class makes volumes for a node with these labels."""
    terms = storage_class.allowed_topologies
    return not terms or any(
        all(labels.get(e.key) in e.values for e in term.match_label_expressions or ())
        for term in terms
    )
