"""The names of volumes of CSI drivers in the statuses of nodes, and of their VolumeAttachments.

Source: getAttachmentName in pkg/volume/csi/csi_attacher.go, GetVolumeName in
pkg/volume/csi/csi_plugin.go and GetUniqueVolumeName in pkg/volume/util/util.go, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib

from kcm.api.core_v1 import PersistentVolume

PLUGIN = "kubernetes.io/csi"


def attachment_name(driver: str, handle: str, node: str) -> str:
    """Returns the name of the VolumeAttachment of a volume to a node."""
    digest = hashlib.sha256(f"{handle}{driver}{node}".encode(errors="surrogatepass")).hexdigest()
    return f"csi-{digest}"


def unique_volume_name(volume: PersistentVolume) -> str:
    """Returns the volume's name in `volumesAttached` and `volumesInUse` of nodes.

    Returns "" for a volume that is of no CSI driver.
    """
    csi = volume.spec.csi
    return "" if csi is None else f"{PLUGIN}/{csi.driver}^{csi.volume_handle}"


def name_for_node(unique_name: str, node: str) -> str:
    """Returns the name of the VolumeAttachment of the volume with this unique name to a node.

    Returns "" if the name is not that of a volume of a CSI driver.
    """
    if not unique_name.startswith(f"{PLUGIN}/"):
        return ""
    driver, separator, handle = unique_name.removeprefix(f"{PLUGIN}/").partition("^")
    return attachment_name(driver, handle, node) if separator else ""
