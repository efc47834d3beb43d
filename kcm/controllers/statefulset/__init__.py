"""The StatefulSet controller: `controller` is its entry, and the rest are its pure helpers."""

from kcm.controllers.statefulset.controller import StatefulSetController, StatefulSetOptions

__all__ = ["StatefulSetController", "StatefulSetOptions"]
