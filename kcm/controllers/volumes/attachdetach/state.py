"""What is wanted of one volume, and what there is: upstream's desired and actual state.

Both are read from objects at each sync (design 0038): the pods that use the volume, its
VolumeAttachments, and the nodes of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kcm.api.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.storage_v1 import CSIDriver, VolumeAttachment, claim_key_of, claim_name
from kcm.api.volumes.attachments import attachment_name, name_for_node, unique_volume_name
from kcm.apimachinery.ownership import is_controlled_by
from kcm.helpers.node_reports import ready_status
from kcm.helpers.volumes.attachments import (
    OUT_OF_SERVICE,
    is_attachable,
    is_managed,
    is_shareable,
    needs_volumes,
)
from kcm.sdk import BY_CLAIM, BY_VOLUME, View

_PREFIX = "csi-"


@dataclass(frozen=True)
class VolumeState:
    """The state of one volume. Its mappings are by the names of nodes."""

    volume: PersistentVolume | None  # None if it is gone
    attachments: Mapping[str, VolumeAttachment] = field(default_factory=dict)
    users: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    """The pods for which it is to be attached."""
    holders: frozenset[str] = frozenset()
    """Nodes with pods that use it, although it would not be attached for them now."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Those nodes of attachments and users that exist."""

    @classmethod
    def read(cls, key: str, view: View) -> VolumeState:
        """Returns the state of the volume with this key."""
        volume = view.lister(PersistentVolume).find(key)
        if volume is None or volume.spec.csi is None:
            ours = _own_attachments([key], None, view)
            return cls(None, ours, nodes=_find_nodes(ours, view))
        siblings = view.lister(PersistentVolume).by_index(BY_VOLUME, unique_volume_name(volume))
        volumes = sorted([volume, *(s for s in siblings if s.name != key)], key=lambda v: v.name)
        attachments = _own_attachments([v.name for v in volumes], volume, view)
        users, holders = _find_users(volumes, view)
        nodes = _find_nodes({*attachments, *users}, view)
        driver = view.lister(CSIDriver).find(volume.spec.csi.driver)
        if not is_attachable(volume, driver):
            users, holders = {}, set()
        chosen = next((v for v in volumes if v.name in _bound_names(users, volumes)), volume)
        return cls(chosen, attachments, users, frozenset(holders), nodes)

    @property
    def name(self) -> str:
        return self.volume.name if self.volume is not None else ""

    @property
    def shareable(self) -> bool:
        """Whether it may be attached to several nodes at a time."""
        return self.volume is not None and is_shareable(self.volume)

    def unique_name(self, node: str) -> str:
        """Returns the volume's name in the status of a node, "" if that does not have it.

        The name of a volume that is gone is found by its VolumeAttachment.
        """
        if self.volume is not None:
            return unique_volume_name(self.volume)
        status = self.nodes[node].status if node in self.nodes else None
        if status is None or node not in self.attachments:
            return ""
        listed = [*(status.volumes_in_use or ()), *(v.name for v in status.volumes_attached or ())]
        wanted = self.attachments[node].name
        return next((name for name in listed if name_for_node(name, node) == wanted), "")

    def is_in_use(self, node: str) -> bool:
        """Reports whether the node has the volume mounted. One that is gone is assumed to."""
        present = self.nodes.get(node)
        if present is None:
            return True
        return self.unique_name(node) in (present.status.volumes_in_use or ())

    def is_reported(self, node: str) -> bool:
        """Reports whether the node's status says that the volume is attached."""
        present = self.nodes.get(node)
        attached = present.status.volumes_attached if present is not None else None
        return self.unique_name(node) in (volume.name for volume in attached or ())

    def is_healthy(self, node: str) -> bool:
        """Reports whether the node is ready."""
        present = self.nodes.get(node)
        return present is not None and ready_status(present) == "True"

    def is_out_of_service(self, node: str) -> bool:
        """Reports whether somebody has said that the node is shut down."""
        present = self.nodes.get(node)
        taints = present.spec.taints if present is not None else None
        return any(taint.key == OUT_OF_SERVICE for taint in taints or ())


def _own_attachments(
    names: Iterable[str], volume: PersistentVolume | None, view: View
) -> dict[str, VolumeAttachment]:
    """Returns the VolumeAttachments of this controller by node. Others have other names."""
    lister = view.lister(VolumeAttachment)
    csi = volume.spec.csi if volume is not None else None
    return {
        attachment.spec.node_name: attachment
        for name in names
        for attachment in lister.by_index(BY_VOLUME, name)
        if (
            attachment.name.startswith(_PREFIX)
            if csi is None
            else attachment.name
            == attachment_name(csi.driver, csi.volume_handle, attachment.spec.node_name)
        )
    }


def _find_users(
    volumes: Iterable[PersistentVolume], view: View
) -> tuple[dict[str, list[Pod]], set[str]]:
    """Returns the pods for which the volume is to be attached, and the nodes with others."""
    users: dict[str, list[Pod]] = {}
    holders: set[str] = set()
    for volume in volumes:
        claim = view.lister(PersistentVolumeClaim).find(claim_key_of(volume))
        for pod in view.lister(Pod).by_index(BY_CLAIM, claim_key_of(volume)):
            name = pod.spec.node_name or ""
            node = view.lister(Node).find(name) if name else None
            if not name or not needs_volumes(pod, node):
                continue
            holders.add(name)
            if node is not None and is_managed(node) and _has_claim(pod, volume, claim):
                users.setdefault(name, []).append(pod)
    for pods in users.values():
        pods.sort(key=lambda pod: pod.key)
    return users, holders


def _has_claim(pod: Pod, volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> bool:
    """Reports whether the volume is bound to the claim, and the claim is for the pod."""
    if claim is None or claim.status.phase != "Bound" or claim.spec.volume_name != volume.name:
        return False
    reference = volume.spec.claim_ref
    if reference is None or reference.uid != claim.uid:
        return False
    return any(
        part.ephemeral is None or is_controlled_by(claim, pod)
        for part in pod.spec.volumes or ()
        if claim_name(pod, part) == claim.name
    )


def _bound_names(
    users: Mapping[str, Sequence[Pod]], volumes: Sequence[PersistentVolume]
) -> set[str]:
    """Returns the names of the PersistentVolumes whose claims have users."""
    if len(volumes) == 1 or not users:
        return set()
    used = {
        f"{pod.namespace}/{claim_name(pod, part)}"
        for pods in users.values()
        for pod in pods
        for part in pod.spec.volumes or ()
    }
    return {volume.name for volume in volumes if claim_key_of(volume) in used}


def _find_nodes(names: Iterable[str], view: View) -> dict[str, Node]:
    nodes = view.lister(Node)
    return {name: node for name in names if (node := nodes.find(name)) is not None}
