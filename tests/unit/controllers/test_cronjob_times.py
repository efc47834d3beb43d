"""Tests which start times of a CronJob were missed, and when the next one is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm.apimachinery.cron import parse
from kcm.controllers.cronjob.times import NeverError, find_missed, next_in
from kcm.testing.builders import START, cron_job

HOURLY = "0 * * * *"


def at(text: str) -> datetime:
    """Returns a time of January 2024 in UTC; `text` is the day and the time of day."""
    return datetime.fromisoformat(f"2024-01-{text}").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("last", "now", "expected"),
    [
        (None, "01T00:59", (None, False, False)),
        (None, "01T01:30", ("01T01:00", False, False)),
        (None, "01T03:30", ("01T03:00", True, False)),
        ("01T03:00", "01T03:30", (None, False, False)),
        ("01T03:00", "06T00:30", ("06T00:00", True, True)),
    ],
)
def test_missed_starts(last: str | None, now: str, expected: tuple[Any, bool, bool]) -> None:
    owner = cron_job(status={"last_schedule_time": at(last) if last else None})
    seen = find_missed(owner, parse(HOURLY), at(now), by_deadline=True)
    latest = at(expected[0]) if expected[0] else None
    assert (seen.latest, seen.is_any, seen.are_many) == (latest, *expected[1:])


def test_missed_starts_of_an_uneven_schedule() -> None:
    owner = cron_job(status={"last_schedule_time": at("05T14:30")})  # a Friday
    seen = find_missed(owner, parse("30 6-16/4 * * 1-5"), at("08T11:00"), by_deadline=True)
    assert seen.latest == at("08T10:30")


def test_an_interval_counts_from_the_last_start() -> None:
    owner = cron_job(status={"last_schedule_time": at("01T00:00")})
    seen = find_missed(owner, parse("@every 90m"), at("01T05:00"), by_deadline=True)
    assert seen.latest == at("01T04:30")
    assert next_in(owner, parse("@every 90m"), at("01T05:00")) == 3600.1


def test_what_never_comes_is_no_start() -> None:
    with pytest.raises(NeverError):
        find_missed(cron_job(), parse("0 0 31 2 *"), at("01T05:00"), by_deadline=True)
    assert next_in(cron_job(), parse("0 0 31 2 *"), START) is None


def test_a_last_start_at_the_end_of_time_misses_nothing() -> None:
    owner = cron_job(status={"last_schedule_time": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)})
    with pytest.raises(NeverError):
        find_missed(owner, parse("*/5 * * * *"), at("01T05:00"), by_deadline=True)


def test_a_deadline_of_more_years_than_there_are_forbids_nothing() -> None:
    owner = cron_job(starting_deadline_seconds=2**62)
    seen = find_missed(owner, parse(HOURLY), at("01T01:30"), by_deadline=True)
    assert seen.latest == at("01T01:00")
