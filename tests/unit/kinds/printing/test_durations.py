"""Ages as kubectl prints them; expectations from upstream's duration_test.go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kcm.kinds.printing.durations import age, human_duration

SECOND = timedelta(seconds=1)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (SECOND, "1s"),
        (70 * SECOND, "70s"),
        (190 * SECOND, "3m10s"),
        (70 * MINUTE, "70m"),
        (47 * HOUR, "47h"),
        (49 * HOUR, "2d1h"),
        (8 * DAY + 2 * HOUR, "8d"),
        (367 * DAY, "367d"),
        (2 * YEAR + 25 * DAY, "2y25d"),
        (4 * YEAR, "4y"),
        (8 * YEAR - DAY, "7y364d"),
        (8 * YEAR, "8y"),
        (8 * YEAR + 2 * DAY, "8y"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (2 * MINUTE, "2m"),
        (timedelta(0), "0s"),
        (-1 * SECOND, "0s"),
        (-2 * SECOND, "<invalid>"),
    ],
)
def test_a_duration_is_printed_as_kubectl_does(duration: timedelta, text: str) -> None:
    assert human_duration(duration) == text


def test_an_age_without_a_time_is_unknown() -> None:
    now = datetime(2024, 1, 1, tzinfo=UTC)
    assert age(None, now) == "<unknown>"
    assert age(now - 5 * SECOND, now) == "5s"
