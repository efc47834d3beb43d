"""The reasons and messages of the controller's Events, which are those of upstream.

Source: GenerateMsg and GenerateError in pkg/volume/util/operationexecutor/operation_executor.go,
reportMultiAttachError in pkg/controller/volume/attachdetach/reconciler/reconciler.go and
verifyAttachmentStatus in pkg/volume/csi/csi_attacher.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import PersistentVolume, Pod

FAILED = "FailedAttachVolume"
SUCCEEDED = "SuccessfulAttachVolume"
BEING_DELETED = "volume attachment is being deleted"


def attached(volume: str) -> str:
    """Returns the message for a volume that was attached."""
    return f'AttachVolume.Attach succeeded for volume "{volume}" '


def attach_failed(volume: str, why: str) -> str:
    """Returns the message for a volume that could not be attached."""
    return f'AttachVolume.Attach failed for volume "{volume}" : {why}'


def timed_out(volume: PersistentVolume) -> str:
    """Returns why attaching failed, for an attacher that has not answered."""
    csi = volume.spec.csi
    driver, handle = (csi.driver, csi.volume_handle) if csi is not None else ("", "")
    return (
        f"timed out waiting for external-attacher of {driver} CSI driver to attach volume {handle}"
    )


def multi_attach(volume: str, pod: Pod, others: Sequence[Pod]) -> str:
    """Returns the message for a pod whose volume is attached to another node.

    `others` are the pods that use it there. Pods of other namespaces are counted and not named.
    """
    prefix = f'Multi-Attach error for volume "{volume}"'
    if not others:
        return (
            f"{prefix} Volume is already exclusively attached to one node and can't be attached to "
            "another"
        )
    near = [other.name for other in others if other.namespace == pod.namespace]
    far = len(others) - len(near)
    if not near:
        return f"{prefix} Volume is already used by {far} pod(s) in different namespaces"
    text = f"{prefix} Volume is already used by pod(s) {', '.join(near)}"
    return f"{text} and {far} pod(s) in different namespaces" if far else text
