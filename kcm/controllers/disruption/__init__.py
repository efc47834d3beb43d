"""The disruption controller is in `controller`; the other modules are its pure helpers."""

from kcm.controllers.disruption.controller import DisruptionController

__all__ = ["DisruptionController"]
