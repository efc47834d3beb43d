"""The node lifecycle controller is in `controller`; the other modules are its pure helpers."""

from kcm.controllers.nodelifecycle.controller import NodeLifecycleController

__all__ = ["NodeLifecycleController"]
