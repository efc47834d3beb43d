"""The one thread that does the work of a control plane, at once or when a test says so.

The thread does what there is to do whenever objects change or something is due. With `waits`, it
works only while the test waits for it (in `settle`, `advance_to` and so on), so that the order of
everything is the same in each run. Other threads give it commands, and wait until it has carried
them out.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import structlog

from kcm import errors
from kcm.loops import NEVER
from kcm.redisio import RedisIO
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.control_plane.parts import Parts
from kcm.testing.control_plane.rest import Rest, build_rest, explain_unrest

log = structlog.get_logger("kcm.testing")

T = TypeVar("T")

LONGEST_IDLE = 0.1  # seconds of the machine until the loop looks for injected events
_LEAST_STEP = 0.001  # seconds, so that the time moves whatever is due
RETRY_EVERY = 0.2  # seconds of the machine between attempts while the store is unavailable
_STOP_TIMEOUT = 15.0  # seconds


class ControlLoop:
    """Steps the loops of one control plane. Its methods may be called from any other thread."""

    def __init__(
        self,
        parts: Parts,
        clock: PlaneClock,
        io: RedisIO,
        level: Callable[[float], str],
        *,
        waits: bool,
    ) -> None:
        """`level` waits up to so many seconds until the API server has every write and has done
        its own work. It returns what is missing, "" for nothing.
        """
        self.parts = parts
        self._host = parts.host
        self._clock = clock
        self._io = io
        self._level = level
        self._waits = waits
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kcm-loop", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Makes the loop look for work. Any thread may call it."""
        self._wake.set()

    def ask_to_stop(self) -> None:
        """Makes the thread end after what it is doing."""
        self._stop.set()
        self._wake.set()

    def stop(self) -> None:
        """Stops the thread, and waits until it has ended."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT)

    # --- what a test calls

    def call(self, function: Callable[[], T]) -> T:
        """Calls a function in the loop's thread, and returns or raises what it does."""
        if threading.current_thread() is self._thread:
            return function()
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it is raised where it was called
                done.set_exception(error)

        self._commands.put(run)
        self._wake.set()
        while not self._stop.is_set():
            try:
                return done.result(timeout=1.0)
            except TimeoutError:
                if done.done():  # the function's own
                    raise
        raise errors.ConfigurationError("the control plane has stopped")

    def settle(self, timeout: float) -> Rest:
        """Works until nothing is left to do now, and returns what is pending.

        Raises UnsettledError after `timeout` seconds of the machine.
        """
        return self.call(lambda: self._settle(timeout))

    def advance_to(self, moment: float, timeout: float) -> Rest:
        """Moves the time forward to `moment`, from one thing that is due to the next, and returns
        what is pending then.

        Raises UnsettledError if the control plane does not come to rest within `timeout` seconds of
        the machine at some time on the way.
        """
        return self.call(lambda: self._advance(moment, timeout))

    def advance_to_next(self, latest: float, timeout: float) -> bool:
        """Moves the time to what is due next, at most to `latest`, and reports whether anything
        was due by then. Raises UnsettledError.
        """
        return self.call(lambda: self._advance_to_next(latest, timeout))

    def freeze(self) -> None:
        """Makes the time stand still."""
        self.call(lambda: self._stand_at(self._clock.moment()))

    def go_on(self) -> None:
        """Makes the time go on from where it stands."""
        self.call(self._go_on)

    # --- in the loop's thread

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            if not self._carry_out_command() and not self._work_once():
                self._wake.wait(self._seconds_until_due())

    def _carry_out_command(self) -> bool:
        try:
            command = self._commands.get_nowait()
        except queue.Empty:
            return False
        command()
        return True

    def _work_once(self) -> bool:
        """Does what there is to do, if it need not wait for a test, and reports whether there was
        anything.
        """
        if self._waits:
            return False
        try:
            self.parts.expect_news(injected=True)
            return self._turn()
        except errors.Temporary as error:
            if not self._stop.is_set():
                log.warning("the store is unavailable, trying again", error=str(error))
                self._stop.wait(RETRY_EVERY)
        except Exception:  # the thread must outlive what a part of the control plane raises
            log.exception("the control plane failed, and tries again")
            self._stop.wait(RETRY_EVERY)
        return True

    def _turn(self) -> bool:
        return self._host.turn(upkeep=not self._clock.frozen)

    def _next_due(self) -> float:
        return self._host.next_due(upkeep=not self._clock.frozen)

    def _seconds_until_due(self) -> float | None:
        if self._waits:
            return None
        if self._clock.frozen:
            return LONGEST_IDLE
        return min(max(self._next_due() - self._clock.moment(), 0.0), LONGEST_IDLE)

    def _settle(self, timeout: float, *, final: bool = False) -> Rest:
        self._work_off(timeout, final=final)
        pending = self.parts.list_pending()
        return build_rest(self._clock.moment(), {w: at for w, at in pending.items() if at < NEVER})

    def _work_off(self, timeout: float, *, final: bool = False, hop: bool = False) -> None:
        """Works until nothing is left to do. Raises UnsettledError.

        In a `hop`, only the API server's own loops are waited for, and only if they have work.
        """
        deadline = self._clock.monotonic() + timeout
        changes, syncs = self.parts.changes, self.parts.syncs
        changed, synced = changes.of_objects.copy(), syncs.counts.copy()
        seen = self.parts.count_api_changes()
        missing = "" if hop else self._level(timeout)  # first, so that its writes come first
        self.parts.passes.expect_final(final)
        self.parts.expect_news(injected=not hop)
        while True:
            while self._turn():
                self.parts.passes.expect_final(False)
                if self._clock.monotonic() > deadline or self._stop.is_set():
                    break
            self.parts.passes.expect_final(False)
            late = self._clock.monotonic() > deadline or self._stop.is_set()
            if not hop or self.parts.count_api_changes() != seen:
                seen = self.parts.count_api_changes()
                missing = self._level(max(deadline - self._clock.monotonic(), 0.0))
            self.parts.expect_news()
            if not late and not missing and not self._turn():
                return
            if late:
                break
        raise explain_unrest(
            timeout,
            changes.of_objects - changed,
            syncs.counts - synced,
            f" The API server {missing}." if missing else "",
        )

    def _advance(self, moment: float, timeout: float) -> Rest:
        goes_on = not self._clock.frozen
        self._stand_at(self._clock.moment())
        try:
            self._work_off(timeout)
            while (due := self._next_due()) < moment and not self._stop.is_set():
                self._arrive(max(due, self._clock.moment() + _LEAST_STEP))
                self._work_off(timeout, hop=True)
            self._arrive(moment)
            return self._settle(timeout, final=True)
        finally:
            if goes_on:
                self._go_on()

    def _advance_to_next(self, latest: float, timeout: float) -> bool:
        self._work_off(timeout)
        due = max(self._next_due(), self._clock.moment() + _LEAST_STEP)
        self._arrive(min(due, latest))
        self._work_off(timeout, final=due > latest)
        return due <= latest

    def _arrive(self, moment: float) -> None:
        if moment > self._clock.moment():
            self._stand_at(moment)
            self.parts.arrive()

    def _stand_at(self, moment: float) -> None:
        # In whole milliseconds, as the scripts have it, and never before what is due.
        milliseconds = int(moment * 1000)
        while milliseconds / 1000 < moment:
            milliseconds += 1
        self._io.set_time(milliseconds / 1000)
        self._clock.stand_at(milliseconds / 1000)

    def _go_on(self) -> None:
        self._clock.go_on()
        self._io.set_time(ahead=self._clock.ahead)
