"""ReplicationController: keeps as many pods as each ReplicationController asks for.

ReplicationControllers are the predecessors of ReplicaSets, with selectors of plain labels. As
upstream, this is the ReplicaSet controller for another kind, and the only controller that depends
on another one.

Source: pkg/controller/replication/{replication_controller,conversion}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.api.core_v1 import ReplicationController
from kcm.controllers.replicaset.controller import ReplicaSetController
from kcm.sdk import Options


class ReplicationControllerOptions(Options):
    """The options of the ReplicationController controller."""

    concurrent_rc_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of replication controllers that are allowed to sync concurrently. "
        "Larger number = more responsive replica management, but more CPU (and network) load",
    )


class ReplicationControllerController(ReplicaSetController):
    """Syncs ReplicationControllers, one key each."""

    name = "replicationcontroller-controller"
    short_name = "replicationcontroller"
    options_type = ReplicationControllerOptions
    model = ReplicationController

    def concurrent_syncs(self) -> int:
        return int(self.options.concurrent_rc_syncs)

    def _reports_terminating(self) -> bool:
        return False  # this kind has no such field
