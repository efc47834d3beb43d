"""Changes of a node's `volumesAttached`, as functions for a `Patch` of its status."""

from __future__ import annotations

from functools import partial

from kcm.api.core_v1 import Node
from kcm.api.core_v1.nodes import AttachedVolume
from kcm.sdk import Patch


def list_volume(node: Node, name: str) -> Patch:
    """Returns the write after which the node's status has the volume as attached."""
    return Patch(node, partial(_add, name), status=True)


def unlist_volume(node: Node, name: str, *, although_used: bool) -> Patch:
    """Returns the write after which the node's status does not have the volume as attached.

    It changes nothing if the node uses the volume by then, except with `although_used`.
    """
    return Patch(node, partial(_remove, name, although_used), status=True)


def _add(name: str, obj: Node) -> Node:
    present = obj.status.volumes_attached or []
    if any(volume.name == name for volume in present):
        return obj
    added = [*present, AttachedVolume(name=name, device_path="")]
    return obj.with_status(obj.status.replace(volumes_attached=added))


def _remove(name: str, although_used: bool, obj: Node) -> Node:
    present = obj.status.volumes_attached or []
    kept = [volume for volume in present if volume.name != name]
    in_use = name in (obj.status.volumes_in_use or ())
    if len(kept) == len(present) or (in_use and not although_used):
        return obj
    return obj.with_status(obj.status.replace(volumes_attached=kept or None))
