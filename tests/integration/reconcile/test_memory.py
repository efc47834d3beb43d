"""Tests what a controller remembers about a key in Redis."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.reconcile.memory import Memory
from kcm.redisio import Fence, RedisIO

FENCE = Fence("held", "key", "7")


@pytest.fixture
def memory(io: RedisIO) -> Memory:
    io.execute("HSET", "held", "key", "7")
    return Memory(io, "scheduler")


def test_nothing_is_remembered_at_first(memory: Memory) -> None:
    assert memory.load("default-scheduler") == {}


def test_what_one_sync_leaves_the_next_one_finds(memory: Memory) -> None:
    memory.save("a", {}, {"x": "1", "y": "2"}, FENCE)
    memory.save("a", {"x": "1", "y": "2"}, {"y": "3", "z": "4"}, FENCE)
    assert memory.load("a") == {"y": "3", "z": "4"}
    assert memory.load("b") == {}


def test_an_empty_memory_takes_no_key(memory: Memory, io: RedisIO) -> None:
    memory.save("a", {}, {"x": "1"}, FENCE)
    memory.save("a", {"x": "1"}, {}, FENCE)
    assert io.execute("EXISTS", io.keys.memory("scheduler", "a")) == 0


def test_who_lost_the_key_changes_nothing(memory: Memory, io: RedisIO) -> None:
    io.execute("HSET", "held", "key", "8")
    with pytest.raises(errors.Fenced):
        memory.save("a", {}, {"x": "1"}, FENCE)
    assert memory.load("a") == {}
