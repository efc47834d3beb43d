"""Waits for conditions, by the clock of a control plane.

If the time goes on, they are looked at again and again. If it stands still, it is moved: the
condition is looked at whenever the control plane has come to rest, and the time then moves to what
is due next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from kcm.clock import Clock
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.control_plane.loop import ControlLoop
from kcm.testing.control_plane.objects import ApiError, Json

STEP_TIMEOUT = 60.0  # seconds of the machine for the work at one time
BETWEEN_LOOKS = 0.02  # seconds of the machine
QUIET = 0.05  # seconds without a change, after which other programs have nothing more to do now
LAST_CHANCE = 2.0  # seconds of the machine that other programs have at the end of a wait


class Patience:
    """Waits in the thread of a test, while the time goes on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._never = threading.Event()

    def wait_until(self, holds: Callable[[], object], seconds: float, name: str) -> None:
        """Waits until `holds` returns a true value. An ApiError counts as false.

        Raises AssertionError after `seconds` of the control plane's clock.
        """
        last: ApiError | None = None

        def look() -> bool:
            nonlocal last
            try:
                last = None
                return bool(holds())
            except ApiError as error:
                last = error
                return False

        if not self._wait(look, seconds):
            why = f": {last}" if last else ""
            raise AssertionError(f"{name} did not hold within {seconds:g} s{why}")

    def _wait(self, look: Callable[[], bool], seconds: float) -> bool:
        deadline = self._clock.monotonic() + seconds
        while not look():
            if self._clock.monotonic() > deadline:
                return False
            self._clock.wait(self._never, BETWEEN_LOOKS)
        return True

    def wait_for(
        self, look: Callable[[], Json], condition: str, status: str, seconds: float, name: str
    ) -> Json:
        """Waits until the object that `look` returns has a condition, and returns the object.

        Raises AssertionError with the conditions that it has.
        """
        seen: Json = {}

        def holds() -> bool:
            seen.clear()
            seen.update(look())
            return any(
                c.get("type") == condition and c.get("status") == status
                for c in conditions_of(seen)
            )

        try:
            self.wait_until(holds, seconds, name)
        except AssertionError as late:
            had = ", ".join(
                f"{c.get('type')}={c.get('status')} ({c.get('message') or c.get('reason') or ''})"
                for c in conditions_of(seen)
            )
            raise AssertionError(f"{late}; its conditions: {had or 'none'}") from None
        return seen


class LoopPatience(Patience):
    """Waits for a control plane in the test's process, whose time may stand still."""

    def __init__(
        self, loop: ControlLoop, time: PlaneClock, stream_count: Callable[[], int]
    ) -> None:
        """`stream_count` returns how many watches other programs have open."""
        super().__init__(time)
        self._loop = loop
        self._time = time
        self._stream_count = stream_count

    def _wait(self, look: Callable[[], bool], seconds: float) -> bool:
        if not self._time.frozen:
            return super()._wait(look, seconds)
        deadline = self._time.moment() + seconds
        if look():
            return True
        self._come_to_rest()
        while not look():
            if self._time.moment() >= deadline:
                return self._look_on(look)
            self._loop.advance_to_next(deadline, STEP_TIMEOUT)
            self._come_to_rest()
        return True

    def _come_to_rest(self) -> None:
        """Settles, again and again while other programs that watch objects change some."""
        self._loop.settle(STEP_TIMEOUT)
        if not self._stream_count():
            return
        deadline = self._clock.monotonic() + STEP_TIMEOUT
        seen = -1
        while seen != (seen := self._loop.work.changed.total()):
            self._clock.wait(self._never, QUIET)
            self._loop.settle(max(deadline - self._clock.monotonic(), 0.0))

    def _look_on(self, look: Callable[[], bool]) -> bool:
        """Gives other programs, whose clock is the machine's, a last chance."""
        if not self._stream_count():
            return False
        deadline = self._clock.monotonic() + LAST_CHANCE
        while self._clock.monotonic() < deadline:
            self._clock.wait(self._never, BETWEEN_LOOKS)
            self._loop.settle(STEP_TIMEOUT)
            if look():
                return True
        return False


def conditions_of(obj: Json) -> list[Json]:
    """Returns the conditions in the status of an object."""
    return (obj.get("status") or {}).get("conditions") or []
