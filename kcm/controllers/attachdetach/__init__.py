"""The controller that attaches volumes to nodes, and detaches them."""

from kcm.controllers.attachdetach.controller import AttachDetachController

__all__ = ["AttachDetachController"]
