"""Who works on what: fenced leases, leader election, who is there, and the work queue.

The processes of kcm exclude each other by leases. `workqueue` keeps each key to one worker.

Exclusion depends on `lease` and `keeper`, which fence. `election` decides whether an instance is
active at all; it does not fence, and need not.
"""

from kcm.coordination.election import (
    LeaderCallbacks,
    LeaderElectionConfig,
    LeaderElectionRecord,
    LeaderElector,
    LeaseLock,
    default_identity,
)
from kcm.coordination.keeper import LeaseKeeper
from kcm.coordination.lease import FencedLease, new_holder

__all__ = [
    "FencedLease",
    "LeaderCallbacks",
    "LeaderElectionConfig",
    "LeaderElectionRecord",
    "LeaderElector",
    "LeaseKeeper",
    "LeaseLock",
    "default_identity",
    "new_holder",
]
