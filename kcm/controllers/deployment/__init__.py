"""The Deployment controller: `controller` is its entry, the rest its pure helpers."""

from kcm.controllers.deployment.controller import DeploymentController, DeploymentOptions

__all__ = ["DeploymentController", "DeploymentOptions"]
