"""Tests what is read in a sentinel's announcements, as Redis 7.0 writes them."""

from __future__ import annotations

import pytest

from kcm.redisio.announcements import is_given_up, parse_announcement

TOLD = "+failover-state-wait-promotion"


@pytest.mark.parametrize(
    ("channel", "text", "address"),
    [
        ("+switch-master", "kcm 10.0.0.1 6379 10.0.0.2 6380", ("10.0.0.2", 6380)),
        ("+switch-master", "other 10.0.0.1 6379 10.0.0.2 6380", None),
        (
            TOLD,
            "slave 10.0.0.2:6380 10.0.0.2 6380 @ kcm 10.0.0.1 6379",
            ("10.0.0.2", 6380),
        ),
        (TOLD, "slave 10.0.0.2:6380 10.0.0.2 6380 @ other 10.0.0.1 6379", None),
        (TOLD, "master kcm 10.0.0.1 6379", None),
        ("+switch-master", "kcm 10.0.0.1 6379 10.0.0.2 rubbish", None),
        ("+switch-master", "", None),
        (TOLD, "slave", None),
        ("+sdown", "master kcm 10.0.0.1 6379", None),
    ],
)
def test_the_next_master_is_read_from_what_is_announced_of_the_service(
    channel: str, text: str, address: tuple[str, int] | None
) -> None:
    assert parse_announcement(channel, text, "kcm") == address


@pytest.mark.parametrize(
    ("channel", "text", "given_up"),
    [
        ("-failover-abort-slave-timeout", "master kcm 10.0.0.1 6379", True),
        ("-failover-abort-slave-timeout", "master other 10.0.0.1 6379", False),
        ("-failover-abort-slave-timeout", "", False),
        ("+switch-master", "kcm kcm 6379 10.0.0.2 6380", False),
    ],
)
def test_a_failover_of_the_service_is_given_up(channel: str, text: str, given_up: bool) -> None:
    assert is_given_up(channel, text, "kcm") is given_up
