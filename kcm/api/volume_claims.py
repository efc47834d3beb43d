"""The volume claims that pods use and that volumes are for.

Source: staging/src/k8s.io/component-helpers/storage/ephemeral/ephemeral.go and PodPVCIndexFunc in
pkg/controller/volume/common/common.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import PersistentVolume, Pod
from kcm.api.core_v1.volumes import Volume


def claim_name(pod: Pod, volume: Volume) -> str:
    """Returns the name of the claim that the volume is, "" if it is none.

    An ephemeral volume's claim is named after the pod and the volume.
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else ""


def claim_keys(pod: Pod) -> list[str]:
    """Returns the keys (`namespace/name`) of the claims that the pod's volumes are."""
    names = [claim_name(pod, volume) for volume in pod.spec.volumes or ()]
    return [f"{pod.namespace}/{name}" for name in dict.fromkeys(names) if name]


def claim_key_of(volume: PersistentVolume) -> str:
    """Returns the key of the claim that the volume is for, "" if it is for none."""
    reference = volume.spec.claim_ref
    return "" if reference is None else f"{reference.namespace or ''}/{reference.name or ''}"
