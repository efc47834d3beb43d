"""The disruption controller: `controller` is its entry."""

from kcm.controllers.disruption.controller import DisruptionController

__all__ = ["DisruptionController"]
