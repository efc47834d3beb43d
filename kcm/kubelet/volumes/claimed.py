"""Finds the PersistentVolume behind a volume of a pod that is a claim.

Source: getPVCExtractPV and getPVSpec in
pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.core_v1.volumes import Volume
from kcm.api.storage_v1 import claim_name
from kcm.apimachinery.ownership import is_controlled_by
from kcm.errors import ContainerConfigError
from kcm.helpers.volumes.binding import reaches
from kcm.kubelet.environment.variables import Lookups


def claimed_volume(
    pod: Pod, volume: Volume, lookups: Lookups, node_labels: Mapping[str, str], *, is_mounted: bool
) -> PersistentVolume:
    """Returns the volume that the pod's claim is bound to.

    `is_mounted` says that the pod had it before, and may go on with a claim that is being deleted.
    Raises ContainerConfigError if there is none, or none for this pod or this node.
    """
    name = claim_name(pod, volume)
    claim = lookups.persistent_volume_claim(pod.namespace, name)
    where = f"error processing PVC {pod.namespace}/{name}: "
    if claim is None:
        raise ContainerConfigError(
            f'{where}failed to fetch PVC from API server: persistentvolumeclaims "{name}" not found'
        )
    why = _why_not(pod, volume, claim, is_mounted)
    if why:
        raise ContainerConfigError(f"{where}{why}")
    bound = lookups.persistent_volume(claim.spec.volume_name or "")
    if bound is None:
        raise ContainerConfigError(
            f"{where}failed to fetch PV {claim.spec.volume_name} from API server: "
            f'persistentvolumes "{claim.spec.volume_name}" not found'
        )
    reference = bound.spec.claim_ref
    if reference is None or reference.uid != claim.uid:
        uid = "" if reference is None else reference.uid or ""
        raise ContainerConfigError(
            f'{where}found PV object "{bound.name}" with a pv.Spec.ClaimRef.UID "{uid}" that '
            f'does not point to claim.UID "{claim.uid}"'
        )
    if not reaches(bound, node_labels):
        raise ContainerConfigError(
            "MountVolume.NodeAffinity check failed for volume "
            f'"{bound.name}" : no matching NodeSelectorTerms'
        )
    return bound


def _why_not(pod: Pod, volume: Volume, claim: PersistentVolumeClaim, is_mounted: bool) -> str:
    if volume.ephemeral is not None and not is_controlled_by(claim, pod):
        return f"PVC was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
    if claim.deleting and not is_mounted:
        return "PVC is being deleted"
    if claim.status.phase != "Bound" or not claim.spec.volume_name:
        return "PVC is not bound"
    return ""
