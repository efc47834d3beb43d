"""The StatefulSet controller: `controller` is its entry, the rest its pure helpers."""

from kcm.controllers.statefulset.controller import StatefulSetController, StatefulSetOptions

__all__ = ["StatefulSetController", "StatefulSetOptions"]
