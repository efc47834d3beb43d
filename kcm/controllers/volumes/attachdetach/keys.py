"""Which volumes a change touches.

A volume of no CSI driver, or of one whose volumes are not attached, is touched by no change, so
that pods on such volumes cost nothing. PersistentVolumes with one driver and handle are one volume;
its key is the first of their names.

The caches of different kinds do not agree at one instant. Where a pod's volume is not in them, the
key is that of the claim: its sync sees all that was written before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kcm.api.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.storage_v1 import CSIDriver, VolumeAttachment, claim_keys
from kcm.api.volumes.attachments import name_for_node, unique_volume_name
from kcm.apimachinery.meta_v1 import Kind
from kcm.helpers.node_reports import ready_status
from kcm.helpers.volumes.attachments import (
    KEEP_TERMINATED,
    OUT_OF_SERVICE,
    is_attachable,
    is_managed,
    needs_volumes,
)
from kcm.sdk import BY_NODE, BY_VOLUME, Change, View


def of_pod(change: Change[Pod], view: View) -> Iterable[str]:
    """Returns the volumes of a pod that is on a node, if what it needs has changed."""
    old, pod = change.old, change.object
    if not pod.spec.node_name or not pod.spec.volumes:
        return
    if isinstance(old, Pod) and change.new is not None and _needs(old) == _needs(pod):
        return
    yield from _of_claims(pod, view)


def _needs(pod: Pod) -> tuple[str | None, bool, str]:
    return pod.spec.node_name, needs_volumes(pod, None), pod.uid


def _of_claims(pod: Pod, view: View) -> Iterable[str]:
    for key in claim_keys(pod):
        claim = view.lister(PersistentVolumeClaim).find(key)
        name = (claim.spec.volume_name if claim is not None else None) or ""
        if view.lister(PersistentVolume).find(name) is None:
            yield key
        else:
            yield from _of_name(name, view)


def of_claim(change: Change[PersistentVolumeClaim], view: View) -> Iterable[str]:
    """Returns the volume of a claim that was bound, lost or deleted."""
    claim = change.object
    if not _differs(change, _binding):
        return
    if claim.spec.volume_name:
        yield from _of_name(claim.spec.volume_name, view)


def _differs(change: Change[Kind], part: Callable[[Kind], object]) -> bool:
    """Reports whether the object has come or gone, or this part of it has changed."""
    old, new = change.old, change.new
    return old is None or new is None or part(old) != part(new)


def _binding(claim: PersistentVolumeClaim) -> object:
    return claim.spec.volume_name, claim.status.phase


def _progress(attachment: VolumeAttachment) -> object:
    return attachment.status, attachment.deleting


def _spec(volume: PersistentVolume) -> object:
    return volume.spec


def of_volume(change: Change[PersistentVolume], view: View) -> Iterable[str]:
    """Returns a volume whose spec has changed, and what else has its driver and handle."""
    volume = change.object
    if not _differs(change, _spec):
        return
    if not _is_attachable(volume, view):
        return
    yield volume.name
    yield from _of_name(volume.name, view)
    siblings = view.lister(PersistentVolume).by_index(BY_VOLUME, unique_volume_name(volume))
    if siblings:
        yield min(sibling.name for sibling in siblings)


def of_attachment(change: Change[VolumeAttachment], view: View) -> Iterable[str]:
    """Returns the volume of a VolumeAttachment, whether or not it is there."""
    attachment = change.object
    if not _differs(change, _progress):
        return
    name = attachment.spec.source.persistent_volume_name
    if name:
        yield first_name(name, view)


def of_node(change: Change[Node], view: View) -> Iterable[str]:
    """Returns the volumes of a node that may be attached or detached now.

    Most changes of nodes are reports, which touch nothing.
    """
    old, node = change.old, change.object
    attachments = view.lister(VolumeAttachment)
    if isinstance(old, Node) and change.new is not None and _condition(old) == _condition(node):
        names = {name_for_node(listed, node.name) for listed in _unlisted(old, node)}
        touched = [one for name in names if (one := attachments.find(name)) is not None]
    else:
        touched = list(attachments.by_index(BY_NODE, node.name))
        for pod in view.lister(Pod).by_index(BY_NODE, node.name):
            yield from _of_claims(pod, view)
    for attachment in touched:
        volume = attachment.spec.source.persistent_volume_name
        if volume:
            yield first_name(volume, view)


def _condition(node: Node) -> object:
    taints = node.spec.taints or ()
    return (
        is_managed(node),
        node.annotations.get(KEEP_TERMINATED),
        ready_status(node),
        any(taint.key == OUT_OF_SERVICE for taint in taints),
    )


def _unlisted(old: Node, new: Node) -> set[str]:
    """Returns the unique names of volumes that the node no longer has attached or in use."""
    attached, still = (
        {volume.name for volume in node.status.volumes_attached or ()} for node in (old, new)
    )
    used = set(old.status.volumes_in_use or ()) - set(new.status.volumes_in_use or ())
    return (attached - still) | used


def of_driver(change: Change, view: View) -> Iterable[str]:
    """Returns the volumes of a driver that has come, gone or changed.

    The volumes of a driver without a CSIDriver are attached.
    """
    driver = change.object
    before, after = (
        not isinstance(obj, CSIDriver) or obj.spec.attach_required is not False
        for obj in (change.old, change.new)
    )
    if before == after:
        return
    for volume in view.lister(PersistentVolume).list():
        if volume.spec.csi is not None and volume.spec.csi.driver == driver.name:
            yield first_name(volume.name, view)


def _of_name(name: str, view: View) -> Iterable[str]:
    volume = view.lister(PersistentVolume).find(name)
    if volume is not None and _is_attachable(volume, view):
        yield first_name(name, view)


def _is_attachable(volume: PersistentVolume, view: View) -> bool:
    csi = volume.spec.csi
    return csi is not None and is_attachable(volume, view.lister(CSIDriver).find(csi.driver))


def first_name(name: str, view: View) -> str:
    """Returns the key of the volume: the first name of all with the same driver and handle."""
    volumes = view.lister(PersistentVolume)
    volume = volumes.find(name)
    unique = unique_volume_name(volume) if volume is not None else ""
    if not unique:
        return name
    return min([name, *(sibling.name for sibling in volumes.by_index(BY_VOLUME, unique))])
