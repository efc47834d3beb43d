"""The work queue: client-go's rules, kept in Redis, for any number of machines.

Guarantees: a key waits at most once. It is never held by two workers at a time. If it is added
while it is in flight, it is synced again. A key that was added is synced, whatever happens to
workers and messages, as long as a pump and a reaper run somewhere and Redis keeps its data. A
worker that lost its lease cannot write, because its fence is no longer valid (designs 0004 and
0001).

Does not guarantee that a key is synced only once per add (a worker that died may have done its
work), nor an order, except that the oldest keys generally come first. It does not depend on Celery
messages, which are only wake-ups and may be lost, late or doubled.
"""

from kcm.coordination.workqueue.additions import Addition, add_keys, dispatch
from kcm.coordination.workqueue.config import RENEW_EVERY, QueueConfig
from kcm.coordination.workqueue.loops import Pump, Reaper
from kcm.coordination.workqueue.metrics import QueueCollector
from kcm.coordination.workqueue.queue import WorkQueue, configure_queues, read_stats, renew
from kcm.coordination.workqueue.renewer import Renewer
from kcm.coordination.workqueue.standby import Standby
from kcm.coordination.workqueue.types import (
    Finished,
    KeyLease,
    LatencyHistogram,
    QueueStats,
    SyncResult,
    SyncStatus,
)

__all__ = [
    "RENEW_EVERY",
    "Addition",
    "Finished",
    "KeyLease",
    "LatencyHistogram",
    "Pump",
    "QueueCollector",
    "QueueConfig",
    "QueueStats",
    "Reaper",
    "Renewer",
    "Standby",
    "SyncResult",
    "SyncStatus",
    "WorkQueue",
    "add_keys",
    "configure_queues",
    "dispatch",
    "read_stats",
    "renew",
]
