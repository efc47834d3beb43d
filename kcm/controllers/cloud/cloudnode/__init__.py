"""The cloud-node controller: what the cloud knows about the instances of nodes."""

from kcm.controllers.cloud.cloudnode.controller import CloudNodeController

__all__ = ["CloudNodeController"]
