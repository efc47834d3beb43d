"""Restores the configurations of the queues, and mends the broker's keys.

Configurations are written at the start, and again if they are lost. No other part mends the
broker's keys. Guarantees: a controller's queue that was emptied, or lost its configuration, works
again some seconds later.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.reconcile.contract import Controller
from kcm.redisio import RedisIO
from kcm.redisio.mending import mend_broker
from kcm.workqueue import QueueConfig, configure_queues

log = structlog.get_logger("kcm.manager")

LOOK_EVERY = 2.0  # seconds


def queue_config(controller: Controller) -> QueueConfig:
    """Returns the configuration of a controller's queue."""
    return QueueConfig(
        task=f"kcm.{controller.short_name}.sync",
        broker_queue=controller.group,
        cap=controller.concurrent_syncs(),
        renew_limit=controller.sync_timeout,
        base_delay=controller.retry_delays[0],
        max_delay=controller.retry_delays[1],
    )


class QueueKeeper:
    """Restores the configurations of the queues that were added."""

    def __init__(self, io: RedisIO, clock: Clock) -> None:
        self._io = io
        self._clock = clock
        self._configs: dict[str, QueueConfig] = {}  # by the names of the queues

    def add(self, configs: Mapping[str, QueueConfig]) -> None:
        """Configures the queues with these names now, and again whenever a configuration is lost.

        Raises Temporary.
        """
        if configs:
            configure_queues(self._io, configs)
            self._configs |= configs

    def run(self, stop: threading.Event) -> None:
        """Calls `once` every LOOK_EVERY seconds until `stop` is set. Errors are logged."""
        while not self._clock.wait(stop, LOOK_EVERY):
            try:
                self.once()
            except errors.KcmError as error:
                log.warning("queues could not be checked", error=str(error))

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
        mend_broker(self._io, {config.broker_queue for config in kept.values()})
        for name in missing:
            log.warning("A queue had lost its configuration", queue=name)
        if missing:
            configure_queues(self._io, {name: kept[name] for name in missing})
        return missing
