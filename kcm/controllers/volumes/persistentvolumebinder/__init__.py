"""The binder of volumes to claims."""

from kcm.controllers.volumes.persistentvolumebinder.controller import (
    PersistentVolumeBinderController,
)

__all__ = ["PersistentVolumeBinderController"]
