"""Tests that readers of a watch log that was deleted list again, whether or not there are new
writes.
"""

from __future__ import annotations

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.redisio import RedisIO
from kcm.store import Store
from tests.new_objects import pod

pytestmark = pytest.mark.redis_only

PODS = BUILT_IN.lookup("pods")


def test_a_log_that_was_taken_away_is_gone_for_who_had_not_read_it(io: RedisIO) -> None:
    store = Store(io)
    position = store.resource_version()
    store.create(pod("a"))
    io.execute("DEL", io.keys.watch("pods"))
    reads = [store.read_changes({PODS: position}, 0) for _ in range(2)]
    assert [read.gone for read in reads] == [set(), {PODS}]


def test_a_log_that_began_anew_is_gone_for_who_missed_its_end(io: RedisIO) -> None:
    store = Store(io)
    position = store.resource_version()
    store.create(pod("a"))
    io.execute("DEL", io.keys.watch("pods"))
    store.create(pod("b"))
    assert store.read_changes({PODS: position}, 0).gone == {PODS}


def test_who_has_read_it_goes_on(io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("a"))
    position = store.resource_version()
    io.execute("DEL", io.keys.watch("pods"))
    for name in ("b", "c", "d"):
        store.create(pod(name))
        changes = store.read_changes({PODS: position}, 0)
        assert [change.key for change in changes.entries] == [f"default/{name}"]
        assert not changes.gone
        position = changes.positions[PODS]


def test_a_newest_version_that_never_was_makes_nobody_list_for_ever(io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("a"))
    for written in ("999999999", "x", "9" * 5000, "-1"):
        io.execute("HSET", io.keys.last_rv(), "pods", written)
        lists = 0
        for _ in range(20):
            changes = store.read_changes({PODS: store.resource_version()}, 0)
            lists += bool(changes.gone)
        assert lists <= 1


def test_a_field_that_is_none_of_a_kind_stops_no_reader(io: RedisIO) -> None:
    store = Store(io)
    position = store.resource_version()
    store.create(pod("a"))
    io.execute("HSET", io.keys.trimmed(), "x", "x", b"\xff", "1", "*", "other")
    changes = store.read_changes({PODS: position}, 0)
    assert [change.key for change in changes.entries] == ["default/a"]
