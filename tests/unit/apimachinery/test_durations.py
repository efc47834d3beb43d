from __future__ import annotations

import time
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.apimachinery.durations import (
    FOREVER,
    format_duration,
    format_seconds,
    parse_duration,
    parse_fine_seconds,
    parse_seconds,
)

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", timedelta(0)),
        ("12h0m0s", 12 * 3600 * SECOND),
        ("40s", 40 * SECOND),
        ("100ms", SECOND / 10),
        ("1.5h", 5400 * SECOND),
        ("-1m30s", -90 * SECOND),
        ("+5s", 5 * SECOND),
        (".5s", SECOND / 2),
        ("1.s", SECOND),
        ("3us", timedelta(microseconds=3)),
        ("3µs", timedelta(microseconds=3)),
        ("1000ns", timedelta(microseconds=1)),
    ],
)
def test_what_go_accepts_is_read(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "5", "s", "1 s", "1x", "1s2", "--1s", ".s", "1e3s", "٣s"])
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration like"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["9" * 1000, "." + "9" * 1000, "9" * 500 + "." + "9" * 500])
def test_long_rows_of_digits_are_read_once(text: str) -> None:
    begun = time.process_time()
    with pytest.raises(ValueError, match="must be a duration like"):
        parse_duration(text)
    assert time.process_time() - begun < 0.5  # the cube of their number took 2.7 s


def test_a_duration_has_at_most_1024_characters() -> None:
    with pytest.raises(ValueError, match="at most 1024 characters"):
        parse_duration("1s" * 100_000)


@pytest.mark.parametrize(
    ("text", "why"), [("1ns", "finer than a microsecond"), ("3000000h", "292 years")]
)
def test_what_cannot_be_kept_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_duration(text)


def test_what_other_programs_measure_may_be_finer() -> None:
    assert parse_fine_seconds("1m30.123456789s") == pytest.approx(90.123456789)
    assert parse_fine_seconds("0") == 0
    with pytest.raises(ValueError, match="must be a duration like"):
        parse_fine_seconds("soon")


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(0), "0s"),
        (timedelta(hours=12), "12h0m0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(milliseconds=100), "100ms"),
        (timedelta(milliseconds=1500), "1.5s"),
        (timedelta(seconds=1), "1s"),
        (timedelta(milliseconds=1), "1ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7µs"),
        (-timedelta(seconds=5), "-5s"),
        (timedelta(hours=1, milliseconds=500), "1h0m0.5s"),
    ],
)
def test_durations_print_as_in_go(duration: timedelta, expected: str) -> None:
    assert format_duration(duration) == expected


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_what_is_printed_is_read_back(microseconds: int) -> None:
    duration = timedelta(microseconds=microseconds)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("text", "value"),
    [("1m30s", 90.0), ("500ms", 0.5), ("-2s", -2.0), ("0", 0.0), ("never", FOREVER), ("1h", 3600)],
)
def test_seconds_are_read(text: str, value: float) -> None:
    assert parse_seconds(text) == value


@pytest.mark.parametrize("text", ["", "5", "1s2", "s", "1 s", "-"])
def test_what_names_no_seconds_is_refused_with_never_among_the_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a duration.*never"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0s"),
        (10, "10s"),
        (60, "1m0s"),
        (160, "2m40s"),
        (300, "5m0s"),
        (3600, "1h0m0s"),
        (3661, "1h1m1s"),
        (0.5, "500ms"),
        (1.5, "1.5s"),
    ],
)
def test_seconds_print_as_in_go(value: float, text: str) -> None:
    assert format_seconds(value) == text
