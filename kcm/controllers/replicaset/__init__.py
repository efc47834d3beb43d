"""The ReplicaSet controller: `controller` is its entry, the rest its pure helpers."""

from kcm.controllers.replicaset.controller import ReplicaSetController, ReplicaSetOptions

__all__ = ["ReplicaSetController", "ReplicaSetOptions"]
