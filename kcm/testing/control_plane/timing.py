"""Durations and times as tests write them, and the clock that a test holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kcm.apimachinery.durations import parse_duration
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.control_plane.loop import ControlLoop
from kcm.testing.control_plane.rest import Rest

Duration = str | float | timedelta  # "1m30s", seconds, or a timedelta
Time = str | datetime  # "2026-01-01T00:00Z", or a datetime with a time zone

PATIENCE = "30s"  # how long waits last by default
STEP_TIMEOUT = "60s"  # of the machine, how long the control plane may work at one time


def to_seconds(duration: Duration) -> float:
    """Returns a duration in seconds. Raises ValueError."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    return parse_duration(duration).total_seconds() if isinstance(duration, str) else duration


def to_moment(time: Time) -> float:
    """Returns a time in seconds since 1970. Raises ValueError."""
    parsed = datetime.fromisoformat(time) if isinstance(time, str) else time
    if parsed.tzinfo is None:
        raise ValueError(f"{time} has no time zone: write {parsed.isoformat()}Z for UTC")
    return parsed.timestamp()


class Timekeeper:
    """The time of a control plane, in the hands of a test.

    At first the time goes on as usual. After `freeze` it stands still, and `advance` and `to` move
    it: whatever becomes due on the way happens at its time and in its order, and takes no longer
    than the work itself. Stamps, delays, back-offs, leases, CronJobs, tokens and simulated
    containers all go by it; requests and their timeouts go by the machine's clock.
    """

    def __init__(self, clock: PlaneClock, loop: ControlLoop) -> None:
        self._clock = clock
        self._loop = loop

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return self._clock.now().astimezone(UTC)

    @property
    def frozen(self) -> bool:
        """Whether the time stands still."""
        return self._clock.frozen

    def freeze(self) -> None:
        """Makes the time stand still. Work that is due goes on."""
        self._loop.freeze()

    def run(self) -> None:
        """Makes the time go on from where it stands."""
        self._loop.go_on()

    def advance(self, duration: Duration, timeout: Duration = STEP_TIMEOUT) -> Rest:
        """Moves the time forward, and returns what is pending then.

        A time that goes on does so afterwards. `timeout` limits the work at one time, by the
        machine's clock. Raises ValueError for a negative duration, and UnsettledError if something
        never comes to rest.
        """
        seconds = to_seconds(duration)
        if seconds < 0:
            raise ValueError(f"the clock cannot go back by {duration}: give a positive duration")
        return self._loop.advance_to(self._clock.moment() + seconds, to_seconds(timeout))

    def to(self, time: Time, timeout: Duration = STEP_TIMEOUT) -> Rest:
        """Moves the time forward to `time`; see `advance`. Raises ValueError for one that is
        past.
        """
        moment = to_moment(time)
        if moment < self._clock.moment():
            raise ValueError(
                f"the clock is at {self.now.isoformat()}, and cannot go back to {time}"
            )
        return self._loop.advance_to(moment, to_seconds(timeout))

    def __repr__(self) -> str:
        return f"<clock at {self.now.isoformat()}{', frozen' if self.frozen else ''}>"
