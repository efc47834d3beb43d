"""The ReplicaSet controller: `controller` is its entry, and the rest are its pure helpers."""

from kcm.controllers.replicaset.controller import ReplicaSetController, ReplicaSetOptions

__all__ = ["ReplicaSetController", "ReplicaSetOptions"]
