"""Tests how a loop follows what a sentinel announces."""

from __future__ import annotations

from typing import cast

import pytest

from kcm.coordination.failovers import AGAIN, OBSERVED_EACH, FailoverLoop, failover_loops
from kcm.loops import Turn
from kcm.redisio import Links, RedisIO
from kcm.redisio.announcements import Announcements
from kcm.settings import Settings

ADDRESS = ("10.0.0.2", 6380)
TOLD = (
    "+failover-state-wait-promotion",
    "slave 10.0.0.2:6380 10.0.0.2 6380 @ kcm 10.0.0.1 6379",
)
NAMED = ("+switch-master", "kcm 10.0.0.1 6379 10.0.0.2 6380")
GIVEN_UP = ("-failover-abort-slave-timeout", "master kcm 10.0.0.1 6379")


class Sentinel:
    """What is asked of `Announcements`: each read returns the next of these."""

    service = "kcm"

    def __init__(self, *announcements: tuple[str, str] | OSError | None) -> None:
        self._announcements = list(announcements)

    def read(self, patience: float) -> tuple[str, str] | None:
        announcement = self._announcements.pop(0)
        if isinstance(announcement, OSError):
            raise announcement
        return announcement


class Moves:
    """A loop over some announcements, and how often it moved."""

    def __init__(self, *announcements: tuple[str, str] | OSError | None) -> None:
        self.links, self.count = Links(), 0
        sentinel = cast("Announcements", Sentinel(*announcements))
        self.loop = FailoverLoop("kcm-sentinel-0", sentinel, self.links, self._move)

    def _move(self) -> None:
        self.count += 1

    def turn(self) -> Turn:
        return self.loop.turn(0.0)


def test_the_first_announcement_leads_there_and_the_second_changes_nothing() -> None:
    moves = Moves(None, TOLD, NAMED)
    assert moves.turn() == Turn()
    assert moves.links.announced_master() is None
    for _ in range(2):
        assert moves.turn().worked
        assert moves.links.announced_master() == ADDRESS
    assert moves.count == 1


def test_a_failover_that_is_given_up_leads_back() -> None:
    moves = Moves(TOLD, GIVEN_UP)
    moves.turn()
    moves.turn()
    assert moves.links.announced_master() is None


def test_a_sentinel_that_is_away_is_tried_again_later() -> None:
    moves = Moves(OSError("refused"), NAMED)
    assert moves.turn().rest == AGAIN
    moves.turn()
    assert moves.links.announced_master() == ADDRESS


def test_a_process_listens_to_all_sentinels_and_none_without_sentinels() -> None:
    io = RedisIO(Settings(redis_url="sentinel://a,b,c/kcm"))
    assert [loop.name for loop in failover_loops(io)] == [f"kcm-sentinel-{n}" for n in range(3)]
    assert failover_loops(RedisIO(Settings(redis_url="redis://a"))) == ()


def test_where_writes_wait_for_replicas_they_are_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    io = RedisIO(Settings(redis_url="sentinel://a/kcm", redis_durability="replicated"))
    monkeypatch.setattr(io, "observe_replicas", lambda: looks.append("once"))
    *_, loop = failover_loops(io)
    assert loop.turn(0.0) == Turn(rest=OBSERVED_EACH)
    assert looks == ["once"]
