"""The binder of volumes to claims."""

from kcm.controllers.persistentvolumebinder.controller import PersistentVolumeBinderController

__all__ = ["PersistentVolumeBinderController"]
