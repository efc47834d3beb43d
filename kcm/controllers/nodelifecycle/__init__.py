"""The node lifecycle controller; see `controller` for what it does."""

from kcm.controllers.nodelifecycle.controller import NodeLifecycleController

__all__ = ["NodeLifecycleController"]
