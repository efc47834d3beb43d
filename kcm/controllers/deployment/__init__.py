"""The Deployment controller: `controller` is its entry, and the rest are its pure helpers."""

from kcm.controllers.deployment.controller import DeploymentController, DeploymentOptions

__all__ = ["DeploymentController", "DeploymentOptions"]
