"""The Deployment controller is in `controller`; the other modules are its pure helpers."""

from kcm.controllers.deployment.controller import DeploymentController, DeploymentOptions

__all__ = ["DeploymentController", "DeploymentOptions"]
