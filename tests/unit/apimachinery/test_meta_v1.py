"""Parsing and formatting of RFC 3339 times."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.api import codec
from kcm.api.coordination_v1 import LeaseSpec
from kcm.apimachinery.meta_v1 import format_micro_time, format_time, parse_time, shift_time
from kcm.testing import builders

NOON = datetime(2024, 5, 6, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-06T12:00:00Z", NOON),
        ("2024-05-06T14:00:00+02:00", NOON),
        ("2024-05-06T12:00:00.5Z", NOON.replace(microsecond=500_000)),
        ("2024-05-06T12:00:00.000001Z", NOON.replace(microsecond=1)),
        ("2024-05-06T12:00:00.123456789Z", NOON.replace(microsecond=123_456)),
    ],
)
def test_rfc_3339_is_read(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment
    assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-05-06",
        "2024-05-06T12:00:00",
        "2024-05-06 12:00:00Z",
        "2024-13-06T12:00:00Z",
        "2024-W01-1T12:00:00Z",
        "1715000000",
        "0001-01-01T00:00:00+23:00",
        "2024-05-06T12:00:00Z\n",
        "\u0662024-05-06T12:00:00Z",
    ],
)
def test_anything_else_is_not(text: str) -> None:
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_time(text)


def test_times_print_in_utc_to_the_second() -> None:
    berlin = timezone(timedelta(hours=2))
    assert format_time(NOON.astimezone(berlin)) == "2024-05-06T12:00:00Z"
    assert format_time(NOON.replace(microsecond=999_999)) == "2024-05-06T12:00:00Z"


def test_micro_times_print_all_six_digits() -> None:
    assert format_micro_time(NOON) == "2024-05-06T12:00:00.000000Z"
    assert format_micro_time(NOON.replace(microsecond=7)) == "2024-05-06T12:00:00.000007Z"


def test_early_years_print_four_digits() -> None:
    assert format_time(datetime(7, 1, 1, tzinfo=UTC)) == "0007-01-01T00:00:00Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_micro_times_survive_a_round_trip(moment: datetime) -> None:
    assert parse_time(format_micro_time(moment)) == moment


def test_a_time_field_drops_fractions_and_a_micro_time_field_keeps_them() -> None:
    precise = NOON.replace(microsecond=123)
    pod = builders.pod(status={"start_time": precise})
    assert pod.status.start_time == NOON
    assert LeaseSpec(renew_time=precise).renew_time == precise


def test_a_time_assigned_without_validation_still_prints_right() -> None:
    pod = builders.pod().with_metadata(creation_timestamp=NOON.replace(microsecond=5))
    assert b'"creationTimestamp":"2024-05-06T12:00:00Z"' in codec.encode(pod)


@pytest.mark.parametrize("value", [1715000000, True, datetime(2024, 1, 1), "yesterday"])
def test_a_time_field_refuses_numbers_and_times_without_a_zone(
    value: bool | datetime | int | str,
) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339|time zone"):
        LeaseSpec(renew_time=value)


@pytest.mark.parametrize(
    ("seconds", "moment"),
    [
        (60, NOON.replace(minute=1)),
        (-3600, NOON.replace(hour=11)),
        (2**62, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (2**38, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (-(2**62), datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_no_number_of_seconds_leads_beyond_the_calendar(seconds: int, moment: datetime) -> None:
    assert shift_time(NOON, seconds) == moment
