"""The cloud-node controller: what the cloud knows about the instances of nodes."""

from kcm.controllers.cloudnode.controller import CloudNodeController

__all__ = ["CloudNodeController"]
