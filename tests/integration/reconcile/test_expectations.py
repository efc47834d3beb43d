"""Tests the expectations in Redis: sets of pending writes that expire and are fenced."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.reconcile.expectations import EXPECTATIONS_TIMEOUT, ControllerExpectations, Pending
from kcm.redisio import Fence, RedisIO
from kcm.redisio.quick import QuickPool
from tests.server_clock import step

KEY = "default/web"


@pytest.fixture
def expectations(io: RedisIO) -> ControllerExpectations:
    return ControllerExpectations(io, "replicaset")


def test_nothing_is_expected_at_first(expectations: ControllerExpectations) -> None:
    assert expectations.satisfied(KEY)
    assert expectations.pending(KEY) == Pending()


def test_they_are_satisfied_when_everything_was_seen(
    expectations: ControllerExpectations,
) -> None:
    expectations.expect(KEY, creations=["web-a", "web-b"], deletions=["u1"])
    assert expectations.pending(KEY) == Pending(frozenset({"web-a", "web-b"}), frozenset({"u1"}))
    assert expectations.observe_changes(KEY, creations=["web-a", "web-b"]) == 2
    assert not expectations.satisfied(KEY)
    assert expectations.observe_changes(KEY, deletions=["u1"]) == 1
    assert expectations.satisfied(KEY)


def test_an_observation_that_comes_twice_lowers_nothing_twice(
    expectations: ControllerExpectations,
) -> None:
    expectations.expect(KEY, creations=["web-a", "web-b"])
    assert [expectations.observe_changes(KEY, creations=["web-a"]) for _ in range(3)] == [1, 0, 0]
    assert expectations.pending(KEY).creations == {"web-b"}


def test_what_was_not_expected_is_of_no_concern(expectations: ControllerExpectations) -> None:
    expectations.expect(KEY, deletions=["u1"])
    assert expectations.observe_changes(KEY, creations=["u1"], deletions=["u2"]) == 0
    assert expectations.observe_changes("default/other", deletions=["u1"]) == 0
    assert not expectations.satisfied(KEY)


def test_new_ones_take_the_place_of_the_old(expectations: ControllerExpectations) -> None:
    expectations.expect(KEY, creations=["web-a"])
    expectations.expect(KEY, deletions=["u1"])
    assert expectations.pending(KEY) == Pending(deletions=frozenset({"u1"}))


def test_they_are_given_up_after_five_minutes(
    io: RedisIO, expectations: ControllerExpectations
) -> None:
    expectations.expect(KEY, creations=["web-a"])
    step(io, EXPECTATIONS_TIMEOUT - 1)
    assert not expectations.satisfied(KEY)
    step(io, 1)
    assert expectations.satisfied(KEY)
    assert EXPECTATIONS_TIMEOUT == 300


def test_redis_forgets_them_too(io: RedisIO, expectations: ControllerExpectations) -> None:
    expectations.expect(KEY, creations=["web-a"])
    left = io.execute("PTTL", io.keys.expectations("replicaset", KEY))
    assert 0 < left <= 300_000


def test_they_can_be_forgotten(expectations: ControllerExpectations) -> None:
    expectations.expect(KEY, creations=["web-a"])
    expectations.forget(KEY)
    assert expectations.satisfied(KEY)


def test_controllers_and_keys_do_not_share_them(
    io: RedisIO, expectations: ControllerExpectations
) -> None:
    expectations.expect(KEY, creations=["web-a"])
    assert ControllerExpectations(io, "job").satisfied(KEY)
    assert expectations.satisfied("default/other")


def test_thousands_are_no_problem(expectations: ControllerExpectations) -> None:
    names = [f"web-{number}" for number in range(9000)]
    expectations.expect(KEY, creations=names)
    assert len(expectations.pending(KEY).creations) == 9000
    assert expectations.observe_changes(KEY, creations=names) == 9000


def test_only_who_holds_the_key_may_set_or_forget_them(
    io: RedisIO, expectations: ControllerExpectations
) -> None:
    io.execute("HSET", "kcm:test:running", KEY, "5")
    held, lost = (Fence("kcm:test:running", KEY, token) for token in ("5", "4"))
    expectations.expect(KEY, creations=["web-a"], fence=held)
    with pytest.raises(errors.Fenced):
        expectations.expect(KEY, fence=lost)
    with pytest.raises(errors.Fenced):
        expectations.forget(KEY, lost)
    assert not expectations.satisfied(KEY)
    expectations.forget(KEY, held)
    assert expectations.satisfied(KEY)


def test_setting_them_again_after_a_lost_reply_does_not_undo_an_observation(
    io: RedisIO, expectations: ControllerExpectations, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = io.driver.connection_pool
    assert isinstance(pool, QuickPool)
    sent: list[bytes] = []
    send = pool.exchange

    def record(packed: bytes, count: int) -> list[object]:
        sent.append(packed)
        return send(packed, count)

    monkeypatch.setattr(pool, "exchange", record)
    expectations.expect(KEY, creations=["web-a"])
    expectations.observe_changes(KEY, creations=["web-a"])
    send(sent[0], 1)  # the first call is repeated
    assert expectations.satisfied(KEY)
