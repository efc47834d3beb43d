"""The controller that attaches volumes to nodes, and detaches them."""

from kcm.controllers.volumes.attachdetach.controller import AttachDetachController

__all__ = ["AttachDetachController"]
