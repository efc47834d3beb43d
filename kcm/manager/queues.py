"""Restores the configurations of the queues, deletes keys of the broker that are none of its own,
and tells of queues that no worker serves.

Configurations are written at the start, and again if they are lost. Guarantees: a controller's
queue that was emptied, or lost its configuration, works again some seconds later.

Workers may serve some of the queues only (`-Q`). Keys of a queue that is left out wait for ever,
and nothing fails, so that is logged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import structlog

from kcm.clock import Clock
from kcm.coordination.presence import Member, members
from kcm.coordination.workqueue import QueueConfig, configure_queues
from kcm.loops import Loop, Turn
from kcm.reconcile.contract import Controller
from kcm.redisio import RedisIO
from kcm.redisio.broker_keys import delete_wrong_keys

log = structlog.get_logger("kcm.manager")

LOOK_EVERY = 2.0  # seconds
TICKS_QUEUE = "ticks"  # of the periodic loops; each other queue is a group of controllers
SILENT_AFTER = 12.0  # seconds without a heartbeat, of which two come in that time
GRACE = 15.0  # seconds that a queue may be without a worker; workers take some to start


def queue_config(controller: Controller) -> QueueConfig:
    """Returns the configuration of a controller's queue."""
    return QueueConfig(
        task=f"kcm.{controller.short_name}.sync",
        broker_queue=controller.group,
        cap=controller.concurrent_syncs(),
        renew_limit=controller.keys.timeout,
        base_delay=controller.keys.first_retry,
        max_delay=controller.keys.longest_retry,
    )


def count_workers(queues: Collection[str], members: Iterable[Member]) -> Mapping[str, int]:
    """Returns the number of processes that serve each of the queues."""
    served = Counter(
        queue for member in members if member.silent <= SILENT_AFTER for queue in member.queues
    )
    return {queue: served[queue] for queue in sorted(queues)}


class ServedQueues:
    """Logs each queue that is without a worker for longer than GRACE, and when it has one again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unserved_since: dict[str, float] = {}  # by queue, on the monotonic clock
        self._logged: set[str] = set()

    def check(self, queues: Collection[str], members: Iterable[Member]) -> None:
        """Looks at the queues, given the processes that are alive."""
        now = self._clock.monotonic()
        for queue, workers in count_workers(queues, members).items():
            if workers:
                self._unserved_since.pop(queue, None)
                if queue in self._logged:
                    self._logged.discard(queue)
                    log.info("A queue has a worker again", queue=queue)
                continue
            since = self._unserved_since.setdefault(queue, now)
            if now - since >= GRACE and queue not in self._logged:
                self._logged.add(queue)
                log.warning(
                    "No worker serves a queue: start one with -Q, or one without -Q, which serves "
                    "them all",
                    queue=queue,
                )


class QueueKeeper(Loop):
    """Restores the configurations of the queues that were added."""

    def __init__(self, io: RedisIO, clock: Clock) -> None:
        super().__init__("kcm-queues")
        self._io = io
        self._configs: dict[str, QueueConfig] = {}  # by the names of the queues
        self._served = ServedQueues(clock)

    def add(self, configs: Mapping[str, QueueConfig]) -> None:
        """Configures the queues with these names now, and again whenever a configuration is lost.

        Raises Temporary.
        """
        if configs:
            configure_queues(self._io, configs)
            self._configs |= configs

    def turn(self, patience: float) -> Turn:
        self.once()
        self._served.check(self.broker_queues, members(self._io))
        return Turn(upkeep_in=LOOK_EVERY)

    @property
    def broker_queues(self) -> Collection[str]:
        """The names of the Celery queues that workers must serve."""
        return {TICKS_QUEUE, *(config.broker_queue for config in dict(self._configs).values())}

    def once(self) -> Sequence[str]:
        """Configures the queues without a configuration again, and returns their names. Raises
        KcmError.
        """
        keys, kept = self._io.keys, dict(self._configs)
        looks = [
            look
            for name in kept
            for look in (
                ("HEXISTS", keys.queue(name, "config"), "task"),
                ("SISMEMBER", keys.queues(), name),
            )
        ]
        reply = self._io.pipeline(looks) if looks else []
        whole = [bool(config and member) for config, member in zip(*[iter(reply)] * 2, strict=True)]
        missing = [name for name, fine in zip(kept, whole, strict=True) if not fine]
        delete_wrong_keys(self._io, {config.broker_queue for config in kept.values()})
        for name in missing:
            log.warning("A queue had lost its configuration", queue=name)
        if missing:
            configure_queues(self._io, {name: kept[name] for name in missing})
        return missing
