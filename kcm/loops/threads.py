"""The host of kcm's processes: each loop has a thread.

Guarantees: a loop whose turns fail goes on after a back-off, which doubles up to a second. A loop
with a lease has turns only while it is held. `stop` wakes all loops, and each finishes by itself.
`list_dead` names those whose threads have ended although they were not stopped.

Does not survive a fork: the parent of Celery's pool runs no loop, and each child has its own host.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import structlog

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.loops.host import contain
from kcm.loops.loop import NEVER, Loop

log = structlog.get_logger("kcm.loops")

PATIENCE = 1.0  # seconds that a turn may wait in Redis, and so the time that a stop may take
STANDBY = 0.2  # seconds between checks of a lease that another process holds
FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 1.0  # seconds after turns that fail
STOP_TIMEOUT = 5.0  # seconds to wait for all threads to end


class ThreadHost:
    """Runs each loop in a thread of its own, from `run` until `stop`."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        patience: float = PATIENCE,
        stop: threading.Event | None = None,
    ) -> None:
        """`stop` is set when the host stops. Whoever sets it calls `stop` soon after."""
        self._clock = clock or RealClock()
        self._patience = patience
        self._rng = random.Random()
        self._stop = stop or threading.Event()
        self._loops: list[Loop] = []
        self.threads: list[threading.Thread] = []  # in the order of their starts
        self._failures: Counter[str] = Counter()

    @property
    def failures(self) -> Mapping[str, int]:
        """How many turns have failed, by the names of the loops that run."""
        return {loop.name: self._failures[loop.name] for loop in self._loops}

    def run(self, *loops: Loop) -> None:
        for loop in loops:
            self._loops.append(loop)
            self.keep(loop.name, lambda stop, loop=loop: self._keep_on(loop))  # type: ignore[misc] # mypy infers no type for a default of a lambda

    def keep(self, name: str, run: Callable[[threading.Event], None]) -> None:
        """Calls `run` in a thread that is watched like a loop's. It returns once the event is
        set.
        """
        self.threads.append(start_thread(name, lambda: run(self._stop)))

    def spawn(self, name: str, work: Callable[[], None]) -> None:
        start_thread(name, lambda: contain(name, work))

    @contextmanager
    def repeat(self, name: str, every: float, work: Callable[[], object]) -> Iterator[None]:
        over = threading.Event()

        def keep_on() -> None:
            while not self._clock.wait(over, every):
                contain(name, work)

        thread = start_thread(name, keep_on)
        try:
            yield
        finally:
            over.set()
            thread.join()

    def list_dead(self) -> list[str]:
        if self._stop.is_set():
            return []
        return [thread.name for thread in self.threads if not thread.is_alive()]

    def ask_to_stop(self) -> None:
        """Makes every loop end after its turn."""
        self._stop.set()
        for loop in self._loops:
            loop.wake()

    def stop(self) -> None:
        self.ask_to_stop()
        deadline = self._clock.monotonic() + STOP_TIMEOUT
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(deadline - self._clock.monotonic(), 0.0))

    # --- in the thread of a loop

    def _keep_on(self, loop: Loop) -> None:
        has_begun, backoff = False, FIRST_BACKOFF
        while not self._stop.is_set():
            if loop.lease is not None and not loop.lease.held:
                has_begun = False
                self._clock.wait(self._stop, STANDBY)
                continue
            loop.in_turn = True  # before the wake is taken, so that it is busy all the time
            loop.woken.clear()
            try:
                if not has_begun:
                    loop.begin()
                    has_begun = True
                turn = loop.turn(self._patience)
            except errors.Fenced as error:
                has_begun = False
                log.info("another process does this now", loop=loop.name, reason=str(error))
                self._clock.wait(self._stop, STANDBY)
            except Exception as error:  # noqa: BLE001 - a loop must outlive whatever its turn raises
                has_begun = False
                backoff = self._back_off(loop, error, backoff)
            else:
                loop.in_turn = False
                backoff = FIRST_BACKOFF
                if not loop.reads:
                    self._wait(loop, turn.soonest)
                elif turn.rest:
                    self._clock.wait(loop.woken, turn.rest)
        loop.in_turn = False
        contain(loop.name, loop.end)

    def _wait(self, loop: Loop, seconds: float) -> None:
        if seconds == NEVER:
            loop.woken.wait()
        elif seconds > 0:
            self._clock.wait(loop.woken, seconds)
        if loop.gathers and loop.woken.is_set():
            self._clock.wait(self._stop, loop.gathers)

    def _back_off(self, loop: Loop, error: Exception, seconds: float) -> float:
        """Logs the error and waits. Returns the seconds to wait after the next one."""
        self._failures[loop.name] += 1
        surprise = None if isinstance(error, errors.KcmError) else error
        loop.in_turn = False
        wait = seconds * (1 + self._rng.random()) / 2  # so that processes do not return all at once
        log.warning(
            "a loop failed, and goes on",
            loop=loop.name,
            error=str(error),
            retry_seconds=round(wait, 3),
            exc_info=surprise,
        )
        self._clock.wait(self._stop, wait)
        return min(seconds * 2, LONGEST_BACKOFF)


def start_thread(name: str, run: Callable[[], object]) -> threading.Thread:
    """Starts a daemon thread for what is no loop."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
