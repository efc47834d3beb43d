"""The StatefulSet controller is in `controller`; the other modules are its pure helpers."""

from kcm.controllers.statefulset.controller import StatefulSetController, StatefulSetOptions

__all__ = ["StatefulSetController", "StatefulSetOptions"]
