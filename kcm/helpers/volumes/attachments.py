"""Which volumes have to be attached to nodes, and for which pods.

Source: pkg/volume/csi/csi_plugin.go, pkg/volume/util/util.go and
pkg/controller/volume/attachdetach/util/util.go, Kubernetes 1.33. Departures: only volumes of CSI
drivers are attached; volumes of clouds that CSI drivers have taken over are not translated.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import Node, PersistentVolume, Pod
from kcm.api.core_v1.container_statuses import ContainerStatus
from kcm.api.storage_v1 import CSIDriver
from kcm.helpers.pods import is_terminal

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
KEEP_TERMINATED = "volumes.kubernetes.io/keep-terminated-pod-volumes"
_SHARED_MODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})


def is_attachable(volume: PersistentVolume, driver: CSIDriver | None) -> bool:
    """Reports whether the volume has to be attached to a node before it can be mounted there.

    `driver` is the CSIDriver of the volume, None if there is none. Such a volume is attached.
    """
    if volume.spec.csi is None:
        return False
    return driver is None or driver.spec.attach_required is not False


def is_shareable(volume: PersistentVolume) -> bool:
    """Reports whether the volume may be attached to several nodes at a time.

    A volume without access modes may be: its driver has to refuse what it cannot do.
    """
    modes = volume.spec.access_modes or ()
    return not modes or not _SHARED_MODES.isdisjoint(modes)


def is_managed(node: Node) -> bool:
    """Reports whether the node's kubelet leaves it to the controller to attach its volumes."""
    return MANAGED in node.annotations


def needs_volumes(pod: Pod, node: Node | None) -> bool:
    """Reports whether the pod's volumes have to be attached to its node.

    Those of a pod that has ended need not be, unless the node's annotation says that they stay.
    """
    if not _has_ended(pod):
        return True
    return node is not None and node.annotations.get(KEEP_TERMINATED) == "true"


def _has_ended(pod: Pod) -> bool:
    if is_terminal(pod):
        return True
    status = pod.status
    return pod.deleting and all(
        _none_runs(statuses or ())
        for statuses in (
            status.init_container_statuses,
            status.container_statuses,
            status.ephemeral_container_statuses,
        )
    )


def _none_runs(statuses: Sequence[ContainerStatus]) -> bool:
    return all(
        status.state is not None
        and (status.state.terminated is not None or status.state.waiting is not None)
        for status in statuses
    )
