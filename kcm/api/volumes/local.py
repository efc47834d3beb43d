"""The names of kcm's own volumes: folders on nodes.

A PersistentVolume of the driver `kcm.dev/local` is a folder below the state folder of its node's
kubelet. The handle of the volume is the folder's name.
"""

from __future__ import annotations

import re

from kcm.api.core_v1 import PersistentVolume

PROVISIONER = "kcm.dev/local"
DRIVER = "local.kcm.dev"  # CSI's names have no slash
DEFAULT_CLASS = "local"
DATA_FINALIZER = "kcm.dev/local-data"
"""It keeps a volume until its node's kubelet has removed the folder, or has let it be."""

_HANDLE = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


def handle_of(volume: PersistentVolume) -> str | None:
    """Returns the name of the volume's folder; None for a volume that is no such folder."""
    csi = volume.spec.csi
    if csi is None or csi.driver != DRIVER or not _HANDLE.fullmatch(csi.volume_handle):
        return None
    return csi.volume_handle
