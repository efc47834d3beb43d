"""Claims, volumes and classes as one pass of a scheduler sees them.

Guarantees: what the pass decides about a volume or a claim, later pods of the pass see, although it
is not written yet.

Source: pkg/scheduler/framework/plugins/volumebinding/{binder,assume_cache}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_classes import class_of_claim, class_of_volume
from kcm.api.storage_v1 import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.volume_binding import claim_key_of
from kcm.reconcile.contract import View
from kcm.scheduler.nodeinfo import NodeInfo
from kcm.scheduler.podinfo import PodInfo
from kcm.scheduler.snapshot import Snapshot

STORAGE_KINDS: tuple[type[KubeObject], ...] = (
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
)
"""What the scheduler reads for pods with claims."""

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
        self._free: dict[str, list[PersistentVolume]] | None = None  # by class
        self._reserved: dict[str, list[PersistentVolume]] = {}  # by claim

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

    def candidates(self, claim: PersistentVolumeClaim) -> Sequence[PersistentVolume]:
        """Returns the volumes that are reserved for the claim, and the free ones of its class."""
        if self._free is None:
            self._free = self._sort_volumes()
        free = [
            volume
            for volume in self._free.get(class_of_claim(claim), ())
            if volume.name not in self._changed_volumes
        ]
        return [*self._reserved.get(claim.key, ()), *free]

    def _sort_volumes(self) -> dict[str, list[PersistentVolume]]:
        free: dict[str, list[PersistentVolume]] = {}
        for volume in self._volumes.list():
            if volume.name in self._changed_volumes:
                continue
            if volume.spec.claim_ref is None:
                free.setdefault(class_of_volume(volume), []).append(volume)
            else:
                self._reserved.setdefault(claim_key_of(volume), []).append(volume)
        return free

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
        csi_node = self._view.lister(CSINode).find(node)
        if csi_node is None:
            return {}
        return {
            driver.name: driver.allocatable.count
            for driver in csi_node.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }

    def handles_on(self, node: NodeInfo) -> set[Handle]:
        """Returns the volumes of CSI drivers that the node's pods use."""
        keys = {key for pod in node.pods.values() for key in pod.claims}
        claims = [claim for key in keys if (claim := self.claim(key)) is not None]
        return {handle for claim in claims if (handle := self.handle_of(claim)) is not None}

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

    def has_room(self, storage_class: StorageClass, size: Quantity, node: NodeInfo) -> bool:
        """Reports whether a volume of this size can be made for the node.

        Only drivers that publish their capacities are asked.
        """
        driver = self._view.lister(CSIDriver).find(storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return True
        for capacity in self._view.lister(CSIStorageCapacity).list():
            limit = capacity.maximum_volume_size or capacity.capacity
            if capacity.storage_class_name != storage_class.name or limit is None or limit < size:
                continue
            if _reaches(capacity, node):
                return True
        return False


def _reaches(capacity: CSIStorageCapacity, node: NodeInfo) -> bool:
    if capacity.node_topology is None:
        return False
    try:
        selector = Selector.from_label_selector(capacity.node_topology)
    except errors.BadRequest:
        return False
    return selector.matches(node.labels)
