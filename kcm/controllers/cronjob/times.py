"""Computes when a CronJob's next Job is due, and which start was missed last.

Source: pkg/controller/cronjob/utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kcm.api.batch_v1 import CronJob
from kcm.apimachinery.cron import Schedule
from kcm.apimachinery.meta_v1 import shift_time

MANY = 100  # missed starts; more of them are reported by an Event
_PADDING = 0.1  # seconds after the next time, for clocks that differ a little


class NeverError(ValueError):
    """Raised when the schedule never comes due."""


@dataclass(frozen=True)
class Missed:
    """The starts that a CronJob has missed since its last one."""

    earliest: datetime  # the time after which starts were looked for
    latest: datetime | None = None  # the last scheduled time that has passed, None for none
    is_any: bool = False  # whether more than one was missed
    are_many: bool = False  # whether more than MANY were missed


def find_missed(
    cron_job: CronJob, schedule: Schedule, now: datetime, *, by_deadline: bool
) -> Missed:
    """Returns the scheduled times since the last start that have passed.

    With `by_deadline`, times that startingDeadlineSeconds rules out are ignored. The number of
    missed starts is estimated from the first interval, so that years of them cost no time. Raises
    NeverError.
    """
    earliest = _earliest(cron_job, now, by_deadline=by_deadline)
    first = schedule.next(earliest)
    if first is None:
        raise NeverError("time difference between two schedules is less than 1 second")
    if now < first:
        return Missed(earliest)
    second = schedule.next(first)
    if second is None or now < second:
        return Missed(earliest, first)
    interval = second - first
    count = (now - first) // interval + 1
    latest = None
    last = schedule.next(first + (count - 2) * interval)
    while last is not None and last <= now:
        latest, last = last, schedule.next(last)
    return Missed(earliest, latest, is_any=True, are_many=count > MANY)


def _earliest(cron_job: CronJob, now: datetime, *, by_deadline: bool) -> datetime:
    earliest = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp
    assert earliest is not None
    seconds = cron_job.spec.starting_deadline_seconds
    if not by_deadline or seconds is None:
        return earliest
    return max(earliest, shift_time(now, -seconds))


def next_in(cron_job: CronJob, schedule: Schedule, now: datetime) -> float | None:
    """Returns the seconds until the next Job is due, None if the schedule never comes due again."""
    try:
        starts = find_missed(cron_job, schedule, now, by_deadline=False)
        since = starts.latest or (now if starts.is_any else starts.earliest)
    except NeverError:
        since = now
    due = schedule.next(since)
    # If the last start is in the future, as after the clock was wrong, the next one comes after it.
    return None if due is None else (due - now).total_seconds() + _PADDING
