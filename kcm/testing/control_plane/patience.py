"""Waits for conditions, by the clock of a control plane.

If the time goes on, they are looked at again and again. If it stands still, it is moved: the
condition is looked at whenever the control plane has come to rest, and the time then moves to what
is due next. While other programs have watches open, it moves only once they have been quiet for
the grace, in the machine's time: no request of theirs, and no change that they were shown. Quiet
that was waited for once is not waited for again unless one of these has happened since, so an
operator that has nothing to do costs nothing.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable

from kcm.clock import Clock
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.control_plane.loop import ControlLoop
from kcm.testing.control_plane.manifests import Json
from kcm.testing.control_plane.objects import ApiError
from kcm.testing.control_plane.outside import Activity, Outside
from kcm.testing.control_plane.rest import Rest, UnsettledError
from kcm.testing.history.invariants import InvariantError

STEP_TIMEOUT = 60.0  # seconds of the machine for the work at one time
BETWEEN_LOOKS = 0.02  # seconds of the machine
# What a look raises at what is not there yet: an object, a field of its status, an equality.
NOT_YET = (ApiError, AssertionError, LookupError, TypeError, AttributeError)

Explain = Callable[[], str]  # says why it is not yet as was awaited, "" if nobody knows


class Patience:
    """Waits in the thread of a test, while the time goes on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._never = threading.Event()

    def wait_until(
        self, holds: Callable[[], object], seconds: float, name: str, explain: Explain = str
    ) -> None:
        """Waits until `holds` returns a true value. What is in NOT_YET counts as false.

        Raises AssertionError after `seconds` of the control plane's clock.
        """
        last: Exception | None = None

        def look() -> bool:
            nonlocal last
            try:
                last = None
                return bool(holds())
            except (InvariantError, UnsettledError):
                raise
            except NOT_YET as error:
                last = error
                return False

        if not self._wait(look, seconds):
            kind = "" if isinstance(last, (ApiError, AssertionError)) else type(last).__name__
            why = f": {' '.join(filter(None, (kind, str(last))))}" if last else ""
            because = explain()
            raise AssertionError(
                f"{name} did not hold within {seconds:g} s{why}{because and f'; {because}'}"
            ) from last

    def _wait(self, look: Callable[[], bool], seconds: float) -> bool:
        deadline = self._clock.monotonic() + seconds
        while not look():
            if self._clock.monotonic() > deadline:
                return False
            self._clock.wait(self._never, BETWEEN_LOOKS)
        return True

    def wait_for(
        self,
        look: Callable[[], Json],
        wanted: tuple[str, str],
        seconds: float,
        name: str,
        explain: Explain,
    ) -> Json:
        """Waits until the object that `look` returns has a condition with a status, and returns the
        object. Raises AssertionError with the conditions that it has.
        """
        seen: Json = {}

        def holds() -> bool:
            seen.clear()
            seen.update(look())
            return any((c.get("type"), c.get("status")) == wanted for c in conditions_of(seen))

        def tell() -> str:
            had = ", ".join(
                f"{c.get('type')}={c.get('status')} ({c.get('message') or c.get('reason') or ''})"
                for c in conditions_of(seen)
            )
            return "; ".join(filter(None, (f"its conditions: {had or 'none'}", explain())))

        self.wait_until(holds, seconds, f"{wanted[0]}={wanted[1]} of {name}", tell)
        return seen


class LoopPatience(Patience):
    """Waits for a control plane in the test's process, whose time may stand still."""

    def __init__(self, loop: ControlLoop, time: PlaneClock, outside: Outside, grace: float) -> None:
        """`grace` is how many seconds other programs are quiet before the time moves."""
        super().__init__(time)
        self._loop = loop
        self._time = time
        self._outside = outside
        self._grace = grace

    def _wait(self, look: Callable[[], bool], seconds: float) -> bool:
        if not self._time.frozen:
            return super()._wait(look, seconds)
        deadline = self._time.moment() + seconds
        if self._outside.look(look):
            return True
        self._loop.settle(STEP_TIMEOUT)
        while not (self._outside.look(look) or self._wait_quiet(look)):
            if self._time.moment() >= deadline:
                return False
            self._loop.advance_to_next(deadline, STEP_TIMEOUT)
        return True

    def settle(self, timeout: float) -> Rest:
        """Waits until nothing is left to do now, and other programs were quiet for the grace.

        Raises UnsettledError after `timeout` seconds of the machine.
        """
        deadline = self._clock.monotonic() + timeout
        rest = self._loop.settle(timeout)
        while not self._outside.is_quiet(self._activity(), self._grace):
            self._wait_quiet(lambda: self._clock.monotonic() > deadline)
            rest = self._loop.settle(max(deadline - self._clock.monotonic(), 0.0))
        return rest

    def _wait_quiet(self, look: Callable[[], bool]) -> bool:
        """Waits until other programs were quiet for the grace, and reports whether `look` held
        before.

        Those that never are do not keep the time from moving: it then moves once a minute.
        """
        began = since = self._clock.monotonic()
        seen = self._activity()
        while not self._outside.is_quiet(seen, self._grace):
            self._clock.wait(self._never, BETWEEN_LOOKS)
            now = self._clock.monotonic()
            if (activity := self._activity()) != seen:
                seen, since = activity, now
                self._loop.settle(STEP_TIMEOUT)
            if self._outside.look(look):
                return True
            if now - since >= self._grace:
                self._outside.note_quiet(seen, self._grace)
            elif now - began >= STEP_TIMEOUT:
                break
        return False

    def _activity(self) -> Activity:
        return self._outside.activity(self._loop.parts.changes.of_kinds)


def conditions_of(obj: Json) -> list[Json]:
    """Returns the conditions in the status of an object."""
    return (obj.get("status") or {}).get("conditions") or []


def name_of(holds: Callable[[], object]) -> str:
    """Returns what a function is called in a message: its name, or the source of a lambda."""
    name = str(getattr(holds, "__name__", "the condition"))
    if name != "<lambda>":
        return name
    code = holds.__code__
    places = [(p, q, r, s) for p, q, r, s in code.co_positions() if p and q and r is not None and s]
    lines = [line.encode() for line in linecache.getlines(code.co_filename)]
    if not places or not lines:
        return name
    first, start = min((line, column) for line, _, column, _ in places)
    last, end = max((line, column) for _, line, _, column in places)
    text = b"".join(lines[first - 1 : last])
    cut = len(lines[last - 1]) - end
    return "lambda: " + " ".join(text[start : len(text) - cut].decode().split())
