from __future__ import annotations

import pytest

from kcm.apimachinery.durations import FOREVER, parse_seconds, print_seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [("1m30s", 90.0), ("500ms", 0.5), ("-2s", -2.0), ("0", 0.0), ("never", FOREVER), ("1h", 3600)],
)
def test_durations_are_read(text: str, value: float) -> None:
    assert parse_seconds(text) == value


@pytest.mark.parametrize("text", ["", "5", "1s2", "s", "1 s", "-"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
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
def test_durations_are_printed_as_go_does(value: float, text: str) -> None:
    assert print_seconds(value) == text
