"""The node lifecycle controller: `controller` is its entry."""

from kcm.controllers.nodelifecycle.controller import NodeLifecycleController

__all__ = ["NodeLifecycleController"]
