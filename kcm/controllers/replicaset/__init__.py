"""The ReplicaSet controller is in `controller`; the other modules are its pure helpers."""

from kcm.controllers.replicaset.controller import ReplicaSetController, ReplicaSetOptions

__all__ = ["ReplicaSetController", "ReplicaSetOptions"]
