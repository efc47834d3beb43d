"""The index functions that the caches of all informers have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.resource_v1.pod_claims import list_claim_entries
from kcm.api.storage_v1 import VolumeAttachment, claim_key_of, claim_keys, class_of_claim
from kcm.api.volumes.attachments import unique_volume_name
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.ownership import controller_of
from kcm.reconcile.contract import (
    BY_CLAIM,
    BY_CONTROLLER,
    BY_NODE,
    BY_OWNER,
    BY_UID,
    BY_VOLUME,
    BY_WANTED_CLASS,
    ORPHANS,
    controller_key,
)


def _controller(obj: KubeObject) -> Sequence[str]:
    owner = controller_of(obj)
    return (controller_key(obj.namespace, owner.uid),) if owner and owner.uid else ()


def _owners(obj: KubeObject) -> Sequence[str]:
    return [owner.uid for owner in obj.metadata.owner_references or () if owner.uid]


def _node(obj: KubeObject) -> Sequence[str]:
    name = getattr(getattr(obj, "spec", None), "node_name", None)
    return (name,) if name else ()


def _uid(obj: KubeObject) -> Sequence[str]:
    return (obj.uid,) if obj.uid else ()


def _claims(obj: KubeObject) -> Sequence[str]:
    if isinstance(obj, Pod):
        volumes = claim_keys(obj) if obj.spec.volumes else []
        return [*volumes, *list_claim_entries(obj)] if obj.spec.resource_claims else volumes
    return (claim_key_of(obj),) if isinstance(obj, PersistentVolume) else ()


def _wanted_class(obj: KubeObject) -> Sequence[str]:
    if not isinstance(obj, PersistentVolumeClaim) or obj.spec.volume_name:
        return ()
    return (class_of_claim(obj),)


def _volumes(obj: KubeObject) -> Sequence[str]:
    if isinstance(obj, VolumeAttachment):
        name = obj.spec.source.persistent_volume_name
    elif isinstance(obj, PersistentVolumeClaim):
        name = obj.spec.volume_name
    else:
        name = unique_volume_name(obj) if isinstance(obj, PersistentVolume) else ""
    return (name,) if name else ()


def _orphans(obj: KubeObject) -> Sequence[str]:
    return () if controller_of(obj) else (obj.namespace or "",)


INDEXERS: Mapping[str, Callable[[KubeObject], Sequence[str]]] = {
    BY_CONTROLLER: _controller,
    BY_OWNER: _owners,
    BY_NODE: _node,
    BY_UID: _uid,
    BY_CLAIM: _claims,
    BY_VOLUME: _volumes,
    BY_WANTED_CLASS: _wanted_class,
    ORPHANS: _orphans,
}
