"""Fenced leases, by which the processes of kcm exclude each other, and upstream's leader election.

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
