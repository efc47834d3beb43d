"""The pump and the reaper, which move keys that no worker moves.

Guarantees: any number of either may run at once, in any processes. Each pass is one script, and
passes that fail are repeated with a back-off. While none runs, delayed and abandoned keys wait, but
none is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.redisio import RedisIO

log = structlog.get_logger(__name__)

_BATCH = 1000  # keys per call, so that a script takes less than about 10 ms
_LONGEST_BLOCK = 1.0  # seconds
_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.1, 2.0  # seconds after a failed pass, doubling


class Pump:
    """Moves delayed keys that are due. It sleeps until the earliest is due, or until it is woken.

    A sleep lasts `longest_block` seconds at most, so `stop` may go unnoticed for that long.
    """

    def __init__(
        self, io: RedisIO, *, longest_block: float = _LONGEST_BLOCK, clock: Clock | None = None
    ) -> None:
        self._io = io
        self._clock = clock or RealClock()
        # A blocking call must return before the connection's own timeout.
        self._longest = min(longest_block, io.settings.socket_timeout / 2)
        self.moved = 0  # keys, by the last pass

    def once(self) -> float | None:
        """Moves the keys that are due.

        Returns the seconds until the next key is due (0: at once), or None if no key is delayed.
        """
        _, now, earliest, moved = self._io.call("queue_pump", _BATCH, call_id="")
        self.moved = int(moved)
        if self.moved:
            log.debug("moved delayed keys", keys=self.moved)
        return max(0.0, (float(earliest) - float(now)) / 1000) if earliest else None

    def run(self, stop: threading.Event) -> None:
        """Moves keys until `stop` is set."""
        _keep_on(self._pass, "pump", stop, self._clock)

    def _pass(self, stop: threading.Event) -> None:
        due_in = self.once()
        wait = self._longest if due_in is None else min(due_in, self._longest)
        if wait > 0 and not stop.is_set():
            # For Redis, a timeout of 0 means forever.
            self._io.execute("BLPOP", self._io.keys.pump_wake(), max(wait, 0.001))


class Reaper:
    """Frees the keys of dead workers, and repeats lost wake-ups."""

    def __init__(self, io: RedisIO, *, interval: float = 1.0, clock: Clock | None = None) -> None:
        self._io = io
        self._interval = interval  # seconds between passes
        self._clock = clock or RealClock()

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

    def run(self, stop: threading.Event) -> None:
        """Runs a pass every `interval` seconds until `stop` is set."""
        _keep_on(self._pass, "reaper", stop, self._clock)

    def _pass(self, stop: threading.Event) -> None:
        self.once()
        self._clock.wait(stop, self._interval)


def _keep_on(
    one_pass: Callable[[threading.Event], None], loop: str, stop: threading.Event, clock: Clock
) -> None:
    """Runs passes until `stop` is set, with a back-off after those that fail."""
    backoff = _FIRST_BACKOFF
    while not stop.is_set():
        try:
            one_pass(stop)
            backoff = _FIRST_BACKOFF
        except errors.KcmError as error:
            log.warning("pass failed", loop=loop, error=str(error), retry_seconds=backoff)
            clock.wait(stop, backoff)
            backoff = min(backoff * 2, _LONGEST_BACKOFF)
