"""Sorts a pod's claims before its nodes are searched, and says what is wrong with them.

Source: PreFilter in pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, Kubernetes
1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import PersistentVolumeClaim
from kcm.api.core_v1.volumes import Volume
from kcm.api.storage_v1 import claim_name, class_of_claim, waits_for_consumer
from kcm.apimachinery.ownership import is_controlled_by
from kcm.controllers.scheduler.nodeinfo import PodInfo
from kcm.controllers.scheduler.plugins.volumes import VolumeRule
from kcm.controllers.scheduler.status import Status, unresolvable
from kcm.controllers.scheduler.volumes.view import StorageView
from kcm.helpers.volumes.binding import is_fully_bound

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def volume_rule_of(info: PodInfo, storage: StorageView) -> VolumeRule | Status:
    """Returns the volume filters of a pod with claims, or why no node can have the pod."""
    bound: dict[str, PersistentVolumeClaim] = {}
    unbound: dict[str, PersistentVolumeClaim] = {}
    immediate = False
    for volume in info.source.spec.volumes or ():
        name = claim_name(info.source, volume)
        if not name:
            continue
        claim = storage.claim(f"{info.namespace}/{name}")
        why = _why_not(info, volume, name, claim)
        if why or claim is None:
            return unresolvable("VolumeBinding", why)
        if is_fully_bound(claim):
            bound[claim.key] = claim
        elif not claim.spec.volume_name and waits_for_consumer(
            storage.storage_class(class_of_claim(claim))
        ):
            unbound[claim.key] = claim
        else:
            immediate = True
    if immediate:
        return unresolvable("VolumeBinding", UNBOUND)
    return VolumeRule(info, storage, list(bound.values()), list(unbound.values()))


def _why_not(info: PodInfo, volume: Volume, name: str, claim: PersistentVolumeClaim | None) -> str:
    if claim is None:
        if volume.ephemeral is None:
            return f'persistentvolumeclaim "{name}" not found'
        return (
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
    if claim.status.phase == "Lost":
        lost = claim.spec.volume_name or ""
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{lost}"'
    if claim.deleting:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if volume.ephemeral is not None and not is_controlled_by(claim, info.source):
        return (
            f"PVC {claim.namespace}/{name} was not created for pod {info.namespace}/{info.name} "
            "(pod is not owner)"
        )
    return ""
