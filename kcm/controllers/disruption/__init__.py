"""The disruption controller; see `controller` for what it does."""

from kcm.controllers.disruption.controller import DisruptionController

__all__ = ["DisruptionController"]
