"""The pump and the reaper, which move keys that no worker moves.

Guarantees: any number of either may run at once, in any processes. Each pass is one script. While
none runs, delayed and abandoned keys wait, but none is lost.
"""

from __future__ import annotations

from collections.abc import Collection

import structlog

from kcm.clock import Clock, RealClock
from kcm.loops import NEVER, Loop, Turn
from kcm.redisio import RedisIO

log = structlog.get_logger(__name__)

_BATCH = 1000  # keys per call, so that a script takes less than about 10 ms


class Pump(Loop):
    """Moves delayed keys that are due. It sleeps until the earliest is due, or until it is woken
    through Redis.
    """

    reads = True

    def __init__(
        self, io: RedisIO, *, polling: Collection[str] = (), clock: Clock | None = None
    ) -> None:
        """`polling` names the queues whose delayed keys are upkeep (see `CloudUse.polls`)."""
        super().__init__("kcm-pump")
        self._io = io
        self._polling = frozenset(polling)
        self._clock = clock or RealClock()
        # A blocking call must return before the connection's own timeout.
        self._longest = io.settings.socket_timeout / 2
        self._due = 0.0  # when the earliest key is due, on the monotonic clock

    def begin(self) -> None:
        self._due = 0.0

    def turn(self, patience: float) -> Turn:
        wait = min(self._due - self._clock.monotonic(), patience, self._longest)
        if wait > 0:
            # For Redis, a timeout of 0 means forever.
            self._io.execute("BLPOP", self._io.keys.pump_wake(), max(wait, 0.001))
        turn = self.once()
        self._due = self._clock.monotonic() + turn.soonest
        return turn

    def once(self) -> Turn:
        """Moves the keys that are due."""
        _, now, moved, *queues = self._io.call("queue_pump", _BATCH, call_id="")
        if int(moved):
            log.debug("moved delayed keys", keys=int(moved))
        due = {
            queue: max(0.0, (float(earliest) - float(now)) / 1000)
            for queue, earliest in zip(queues[::2], queues[1::2], strict=True)
        }
        return Turn(
            int(moved) > 0,
            min((due[queue] for queue in due.keys() - self._polling), default=NEVER),
            min((due[queue] for queue in due.keys() & self._polling), default=NEVER),
        )


class Reaper(Loop):
    """Frees the keys of dead workers, and repeats lost wake-ups."""

    def __init__(self, io: RedisIO, *, interval: float = 1.0) -> None:
        super().__init__("kcm-reaper")
        self._io = io
        self._interval = interval  # seconds between passes

    def turn(self, patience: float) -> Turn:
        return Turn(bool(self.once()), upkeep_in=self._interval)

    def once(self) -> dict[str, tuple[int, int]]:
        """Runs one pass. Returns the numbers of reaped keys and lost wake-ups, per queue that had
        any.
        """
        _, *reply = self._io.call("queue_reap", _BATCH, call_id="")
        repaired = {
            queue: (int(reaped), int(lost))
            for queue, reaped, lost in zip(reply[::3], reply[1::3], reply[2::3], strict=True)
        }
        for queue, (reaped, lost) in repaired.items():
            log.warning("a queue was repaired", queue=queue, reaped=reaped, lost_messages=lost)
        return repaired
