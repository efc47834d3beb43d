"""The controller of ResourceClaims."""

from kcm.controllers.resourceclaim.controller import ResourceClaimController

__all__ = ["ResourceClaimController"]
