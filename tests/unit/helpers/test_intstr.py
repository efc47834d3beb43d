"""Amounts as numbers and as percentages."""

from __future__ import annotations

import pytest

from kcm.helpers.intstr import scaled_value


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (None, 0, 0),
        (0, 0, 0),
        (3, 3, 3),
        ("4", 4, 4),
        ("0%", 0, 0),
        ("25%", 3, 2),
        ("100%", 10, 10),
    ],
)
def test_percentages_are_of_the_total_and_rounded_as_asked(
    value: int | str | None, up: int, down: int
) -> None:
    assert scaled_value(value, 10, round_up=True) == up
    assert scaled_value(value, 10, round_up=False) == down
