"""Schedules: upstream's grammar, messages and times."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from kcm.apimachinery.cron import ScheduleError, load_zone, parse

START = datetime(2024, 1, 1, tzinfo=UTC)  # a Monday
NEW_YORK, SAO_PAULO = "America/New_York", "America/Sao_Paulo"


def times(schedule: str, count: int, after: datetime = START, zone: str | None = None) -> list[str]:
    """Returns the next times of a schedule, on the clock of the zone."""
    new_schedule, place = parse(schedule, zone), ZoneInfo(zone or "UTC")
    shown = []
    for _ in range(count):
        moment = new_schedule.next(after)
        if moment is None:
            break
        after = moment
        shown.append(moment.astimezone(place).strftime("%m-%d %H:%M %Z"))
    return shown


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("*/15 * * * *", ["01-01 00:15 UTC", "01-01 00:30 UTC"]),
        ("7/20 * * * *", ["01-01 00:07 UTC", "01-01 00:27 UTC"]),
        ("0 9-17/4 * * *", ["01-01 09:00 UTC", "01-01 13:00 UTC"]),
        ("0 0 1 FEB,apr *", ["02-01 00:00 UTC", "04-01 00:00 UTC"]),
        ("0 0 * * Fri", ["01-05 00:00 UTC", "01-12 00:00 UTC"]),
        ("0 0 3 * 5", ["01-03 00:00 UTC", "01-05 00:00 UTC"]),  # either day
        ("0 0 */2 * 5", ["01-03 00:00 UTC", "01-05 00:00 UTC"]),  # a star with a step is no star
        ("0 0 ? * 5", ["01-05 00:00 UTC", "01-12 00:00 UTC"]),
        ("0 0 29 2 *", ["02-29 00:00 UTC", "02-29 00:00 UTC"]),
        ("@hourly", ["01-01 01:00 UTC", "01-01 02:00 UTC"]),
        ("@weekly", ["01-07 00:00 UTC", "01-14 00:00 UTC"]),
        ("@yearly", ["01-01 00:00 UTC", "01-01 00:00 UTC"]),
        ("@every 1h30m", ["01-01 01:30 UTC", "01-01 03:00 UTC"]),
        ("0 0 31 2 *", []),
        (", * * * *", []),
    ],
)
def test_times(schedule: str, expected: list[str]) -> None:
    assert times(schedule, 2) == expected


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        (
            "a * * * *",
            'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax',
        ),
        ("@noon", "unrecognized descriptor: @noon"),
        (
            "@every x",
            'failed to parse duration @every x: time: invalid duration "x"',
        ),
        ("TZ=Moon/Sea * * * * *", "provided bad location Moon/Sea: unknown time zone Moon/Sea"),
    ],
)
def test_what_is_no_schedule_is_refused_in_upstreams_words(schedule: str, complaint: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse(schedule)
    assert str(refused.value) == complaint


def test_a_time_that_the_clock_skips_does_not_come() -> None:
    before = datetime(2024, 3, 9, tzinfo=UTC)
    assert times("30 2 * * *", 2, before, NEW_YORK) == ["03-09 02:30 EST", "03-11 02:30 EDT"]


def test_a_time_that_the_clock_repeats_comes_twice() -> None:
    before = datetime(2024, 11, 3, 4, tzinfo=UTC)
    assert times("30 1 * * *", 3, before, NEW_YORK) == [
        "11-03 01:30 EDT",
        "11-03 01:30 EST",
        "11-04 01:30 EST",
    ]


def test_hours_go_on_over_changes_of_the_clock() -> None:
    assert times("0 * * * *", 3, datetime(2024, 11, 3, 4, tzinfo=UTC), NEW_YORK) == [
        "11-03 01:00 EDT",
        "11-03 01:00 EST",
        "11-03 02:00 EST",
    ]
    assert times("0 * * * *", 2, datetime(2024, 3, 10, 6, tzinfo=UTC), NEW_YORK) == [
        "03-10 03:00 EDT",
        "03-10 04:00 EDT",
    ]


def test_a_midnight_that_does_not_exist_is_skipped() -> None:
    before = datetime(2018, 11, 3, tzinfo=UTC)
    assert times("0 0 * * *", 2, before, SAO_PAULO) == ["11-03 00:00 -03", "11-05 00:00 -02"]


def test_a_year_with_two_changes_in_between_loses_nothing() -> None:
    before = datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert times("0 0 1 7 *", 1, before, NEW_YORK) == ["07-01 00:00 EDT"]


def test_a_zone_in_the_text_wins() -> None:
    assert parse("TZ=Asia/Tokyo 0 9 * * *").next(START) == datetime(2024, 1, 2, tzinfo=UTC)
    assert parse("CRON_TZ=UTC 0 9 * * *", "Asia/Tokyo").zone is None


def test_unknown_zones_are_told() -> None:
    with pytest.raises(ScheduleError, match="unknown time zone Moon/Sea"):
        load_zone("Moon/Sea")


@pytest.mark.parametrize(
    "text",
    [
        "@every 999999999999999999s",
        "@every " + "9" * 400 + "h",
        "@every " + "1" * 200_000,
        "9" * 5_000 + " * * * *",
        "* * * * */" + "9" * 5_000,
        "1-" * 50_000 + " * * * *",
    ],
)
def test_a_schedule_beyond_all_numbers_is_refused_at_once(text: str) -> None:
    before = time.process_time()
    with pytest.raises(ScheduleError):
        parse(text)
    assert time.process_time() - before < 5
