"""The choice of a volume, node by node, for a claim that waits for its first consumer.

What does not depend on the node is computed once for a pod.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go (findMatchingVolumes,
checkVolumeProvisions), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_classes import NO_PROVISIONER, class_of_claim
from kcm.api.storage_v1 import StorageClass
from kcm.controllers.scheduler import status
from kcm.controllers.scheduler.nodeinfo import NodeInfo
from kcm.controllers.scheduler.volumes.view import StorageView
from kcm.helpers.volumes.binding import SELECTED_NODE, VolumeRequest, is_for, reaches, requested


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
