"""Durations and times as tests write them, and the clock that a test holds."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta

from kcm.apimachinery.durations import parse_duration
from kcm.clock import Clock
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.control_plane.loop import ControlLoop
from kcm.testing.control_plane.rest import Rest

Duration = str | float | timedelta  # "1m30s", "30d", seconds, or a timedelta
Time = str | datetime  # "2026-01-01T00:00Z", or a datetime with a time zone

PATIENCE = "30s"  # how long waits last by default
GRACE = "5s"  # of the machine, how long other programs are quiet before a wait moves the time
STEP_TIMEOUT = "60s"  # of the machine, how long the control plane may work at one time


_DAYS = re.compile(r"(-?)(?:(\d+(?:\.\d+)?)d)?(.*)", re.ASCII | re.DOTALL)


def to_seconds(duration: Duration) -> float:
    """Returns a duration in seconds; in text, days may stand before what Go knows: `1d12h`.

    Raises ValueError.
    """
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, int | float):
        return duration
    try:
        sign, days, rest = _DAYS.fullmatch(duration).groups()  # type: ignore[union-attr] # all of it may be empty
        seconds = parse_duration(rest or ("0" if days else "")).total_seconds()
    except (ValueError, TypeError):
        raise ValueError(
            f'a duration is text like "90s", "1h30m" or "30d", or seconds, not "{duration}"'
        ) from None
    return (float(days or 0) * 86_400 + seconds) * (-1 if sign else 1)


def to_moment(time: Time) -> float:
    """Returns a time in seconds since 1970. Raises ValueError."""
    parsed = datetime.fromisoformat(time) if isinstance(time, str) else time
    if parsed.tzinfo is None:
        raise ValueError(f"{time} has no time zone: write {parsed.isoformat()}Z for UTC")
    return parsed.timestamp()


class Timekeeper(ABC):
    """The time of a control plane, in the hands of a test.

    At first the time goes on as usual. After `freeze` it stands still, and `advance` and `to` move
    it: whatever becomes due on the way happens at its time and in its order, and takes no longer
    than the work itself. Stamps, delays, back-offs, leases, CronJobs, tokens and simulated
    containers all go by it; requests and their timeouts go by the machine's clock.
    """

    @property
    @abstractmethod
    def now(self) -> datetime:
        """The time, in UTC."""

    @property
    @abstractmethod
    def frozen(self) -> bool:
        """Whether the time stands still."""

    @abstractmethod
    def freeze(self) -> None:
        """Makes the time stand still. Work that is due goes on."""

    @abstractmethod
    def run(self) -> None:
        """Makes the time go on from where it stands."""

    @abstractmethod
    def advance(self, duration: Duration, timeout: Duration = STEP_TIMEOUT) -> Rest:
        """Moves the time forward, and returns what is pending then.

        A time that goes on does so afterwards. `timeout` limits the work at one time, by the
        machine's clock. Raises ValueError for a negative duration, and UnsettledError if something
        never comes to rest.
        """

    @abstractmethod
    def to(self, time: Time, timeout: Duration = STEP_TIMEOUT) -> Rest:
        """Moves the time forward to `time`; see `advance`. Raises ValueError for one that is
        past.
        """

    def seconds_to(self, time: Time) -> float:
        """Returns how far in the future a time is. Raises ValueError for one that is past."""
        left = to_moment(time) - self.now.timestamp()
        if left < 0:
            raise ValueError(f"the clock is at {self.now.isoformat()}: it cannot go back to {time}")
        return left

    def __repr__(self) -> str:
        return f"<clock at {self.now.isoformat()}{', frozen' if self.frozen else ''}>"


class LoopTime(Timekeeper):
    """The time of a control plane in the test's process."""

    def __init__(self, clock: PlaneClock, loop: ControlLoop) -> None:
        self._clock = clock
        self._loop = loop

    @property
    def now(self) -> datetime:
        return self._clock.now()

    @property
    def frozen(self) -> bool:
        return self._clock.frozen

    def freeze(self) -> None:
        self._loop.freeze()

    def run(self) -> None:
        self._loop.go_on()

    def advance(self, duration: Duration, timeout: Duration = STEP_TIMEOUT) -> Rest:
        moment = self._clock.moment() + require_forward(duration)
        return self._loop.advance_to(moment, to_seconds(timeout))

    def to(self, time: Time, timeout: Duration = STEP_TIMEOUT) -> Rest:
        self.seconds_to(time)
        return self._loop.advance_to(to_moment(time), to_seconds(timeout))


class RealTime(Timekeeper):
    """The time of a control plane of real processes, which is the machine's.

    The same test runs with it: what moves the time waits as long as it says, and the time does not
    stand still.
    """

    def __init__(self, clock: Clock, settle: Callable[[float], Rest]) -> None:
        self._clock = clock
        self._settle = settle

    @property
    def now(self) -> datetime:
        return self._clock.now()

    @property
    def frozen(self) -> bool:
        return False

    def freeze(self) -> None:
        """Does nothing: the machine's time cannot stand still."""

    def run(self) -> None:
        """Does nothing: the time goes on."""

    def advance(self, duration: Duration, timeout: Duration = STEP_TIMEOUT) -> Rest:
        self._clock.wait(threading.Event(), require_forward(duration))
        return self._settle(to_seconds(timeout))

    def to(self, time: Time, timeout: Duration = STEP_TIMEOUT) -> Rest:
        return self.advance(self.seconds_to(time), timeout)


def require_forward(duration: Duration) -> float:
    """Returns a duration in seconds. Raises ValueError for one that is negative."""
    seconds = to_seconds(duration)
    if seconds < 0:
        raise ValueError(f"the clock cannot go back by {duration}: give a positive duration")
    return seconds
