"""One work queue, which all processes share.

Source of the rules: staging/src/k8s.io/client-go/util/workqueue/ (queue.go, delaying_queue.go,
default_rate_limiters.go), Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.coordination.workqueue.additions import Addition, add_keys
from kcm.coordination.workqueue.config import QueueConfig
from kcm.coordination.workqueue.types import (
    Finished,
    KeyLease,
    QueueStats,
    SyncResult,
    parse_leases,
    parse_stats,
)
from kcm.redisio import Fence, RedisIO
from kcm.redisio.commands import Argument
from kcm.redisio.scripts import NO_FENCE

_DRAIN_POLL = 0.1  # seconds between checks for keys in flight


def configure_queues(io: RedisIO, configs: Mapping[str, QueueConfig]) -> None:
    """Stores the settings of queues, by their names, and sends wake-ups for keys that wait already.

    Raises: StoreUnavailable.
    """
    args: list[Argument] = []
    for name, config in configs.items():
        fields = config.fields(io.keys.broker_prefix())
        args += [name, 2 * len(fields), *(part for pair in fields.items() for part in pair)]
    io.call("queue_configure", *args, call_id="")


class WorkQueue:
    """The work queue called `name`. Thread-safe. Every method raises StoreUnavailable."""

    def __init__(self, io: RedisIO, name: str, *, clock: Clock | None = None) -> None:
        self.name = name
        self.io = io
        self._clock = clock or RealClock()
        self._running_key = io.keys.queue(name, "running")

    def configure(self, config: QueueConfig) -> None:
        """Stores the settings of the queue, and sends wake-ups for keys that wait already."""
        configure_queues(self.io, {self.name: config})

    def add(self, *keys: str) -> int:
        """Adds keys, and returns the number of those that were not waiting already."""
        return add_keys(self.io, [Addition(self.name, keys)])

    def add_after(self, key: str, delay: float) -> None:
        """Adds `key` after `delay` seconds. If it is already due earlier, that stays."""
        add_keys(self.io, [Addition(self.name, (key,), delay)])

    def add_rate_limited(self, key: str) -> None:
        """Counts a failure of `key`, and adds it when its back-off and the token bucket allow."""
        add_keys(self.io, [Addition(self.name, (key,), rate_limited=True)])

    def forget(self, *keys: str, fence: Fence | None = None) -> None:
        """Resets the failure counts of the keys. Raises: Fenced if the fence is no longer valid."""
        guard = fence.args() if fence else NO_FENCE
        if self.io.call("queue_forget", *guard, self.name, *keys, call_id="")[0] == "FENCED":
            raise errors.Fenced

    def take(
        self, named: str | None = None, max_keys: int = 8, *, answers_message: bool = True
    ) -> list[KeyLease]:
        """Takes waiting keys, `named` first if it waits; none if no key waits or the cap is
        reached.

        `answers_message` is false for a take without a wake-up.
        """
        _, *taken = self.io.call(
            "queue_take", self.name, named or "", max_keys, "1" if answers_message else "0"
        )
        return parse_leases(self.name, self._running_key, taken)

    def finish(self, lease: KeyLease, outcome: SyncResult) -> Finished:
        """Ends one sync of a key; see `finish_all`."""
        return self.finish_all([(lease, outcome)])[0]

    def finish_all(self, ended: Sequence[tuple[KeyLease, SyncResult]]) -> list[Finished]:
        """Ends the syncs of several keys in one call, independently; returns the answers in order.

        A key that was added while it was in flight waits again at once, whatever the result.
        """
        return self.finish_and_take(ended, 0)[0]

    def finish_and_take(
        self, ended: Sequence[tuple[KeyLease, SyncResult]], max_keys: int
    ) -> tuple[list[Finished], list[KeyLease]]:
        """Ends syncs as `finish_all` does, and takes up to `max_keys` keys in the same call."""
        args = [
            part
            for lease, outcome in ended
            for part in (lease.key, lease.token, outcome.result.value, outcome.delay * 1000)
        ]
        _, *reply = self.io.call("queue_finish", self.name, max_keys, *args)
        answers, taken = reply[: 2 * len(ended)], reply[2 * len(ended) :]
        finished = [
            Finished(status == "LOST", float(delay) / 1000 if delay else None)
            for status, delay in zip(answers[::2], answers[1::2], strict=True)
        ]
        return finished, parse_leases(self.name, self._running_key, taken)

    def stats(self) -> QueueStats:
        """Returns the statistics of the queue at this moment."""
        return read_stats(self.io, self.name)[0]

    def shut_down(self) -> None:
        """Stops all takes, in every process, until `resume`. Adds are still accepted.

        It is for operators and tests. A worker that stops need not call it: it takes no more keys
        and abandons those that it holds.
        """
        self.io.call("queue_drain", self.name, "1", call_id="")

    def resume(self) -> None:
        """Allows takes again."""
        self.io.call("queue_drain", self.name, "0", call_id="")

    def drain(self, timeout: float, stop: threading.Event | None = None) -> bool:
        """Shuts down the queue, and waits up to `timeout` seconds. Reports whether no key is in
        flight.

        Source: ShutDownWithDrain in queue.go.
        """
        stop = stop or threading.Event()
        deadline = self._clock.monotonic() + timeout
        while int(self.io.call("queue_drain", self.name, "1", call_id="")[1]) > 0:
            left = deadline - self._clock.monotonic()
            if left <= 0 or self._clock.wait(stop, min(left, _DRAIN_POLL)):
                return False
        return True


def renew(io: RedisIO, leases: Sequence[KeyLease]) -> list[str]:
    """Extends leases of any queues.

    Returns for each lease `OK`, `LIMIT` (this was the last extension) or `LOST`.
    """
    args = [part for lease in leases for part in (lease.queue, lease.key, lease.token)]
    return io.call("queue_renew", *args, call_id="")[1:]


def read_stats(io: RedisIO, *names: str) -> list[QueueStats]:
    """Returns the statistics of the named queues, or of all that were ever configured, by name."""
    return parse_stats(io.call("queue_stats", *names, call_id="")[1:])
