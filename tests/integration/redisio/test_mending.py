"""Keys of another type than kcm keeps there are moved aside, and what they held is made again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcm import errors
from kcm.api import scheme
from kcm.redisio import RedisIO
from kcm.redisio.mending import expected_type, mend
from kcm.store import Store
from kcm.workqueue import QueueConfig, WorkQueue
from tests.new_objects import pod

PODS = scheme.lookup("pods")


@pytest.fixture
def store(io: RedisIO) -> Store:
    store = Store(io)
    for name in "abc":
        store.create(pod(name, node_name="n"))
    return store


def again(step: Callable[[], object]) -> None:
    """As loops do: a step that fails for a while is taken again."""
    with pytest.raises(errors.WrongTypeOfKey):
        step()
    step()


def test_every_key_that_kcm_makes_has_the_type_that_is_expected(store: Store) -> None:
    io = store.io
    queue = WorkQueue(io, "q")
    queue.configure(QueueConfig(task="t", broker_queue="b"))
    queue.add("a", "b")
    queue.add_after("c", 60)
    queue.take()
    queue.add("a")
    assert mend(io) == []
    known = [expected_type(name.removeprefix("kcm:")) for name in io.scan("kcm:*")]
    assert {"zset", "set", "hash", "string", "stream", "list"} <= set(known)


@pytest.mark.parametrize("value", [("SET", "x"), ("RPUSH", "x"), ("HSET", "x", "y")])
@pytest.mark.parametrize("key", ["keys:pods", "index:node:n", "watch:pods", "last_rv", "trimmed"])
def test_writes_go_on(store: Store, key: str, value: tuple[str, ...]) -> None:
    io, name = store.io, f"kcm:{key}"
    if expected_type(key) == "hash" and value[0] == "HSET":
        return
    io.execute("DEL", name)
    io.execute(value[0], name, *value[1:])
    again(lambda: store.create(pod("d", node_name="n")))
    assert [obj.name for obj in store.list(PODS).items] == ["a", "b", "c", "d"]
    assert len(store.by_index("node:n", PODS)) == 4
    assert [name for name in io.scan("kcm:*:aside:*") if name.startswith(f"kcm:{key}:aside:")]


def test_a_plain_command_leads_to_mending_too(store: Store) -> None:
    io = store.io
    io.execute("SET", io.keys.events(), "x")
    again(lambda: io.execute("XADD", io.keys.events(), "*", "a", "b"))


def test_looks_are_no_more_frequent_than_need_be(store: Store) -> None:
    io = store.io
    io.execute("SET", "kcm:unknown", "x")
    for _ in range(2):
        with pytest.raises(errors.WrongTypeOfKey):
            io.execute("LPUSH", "kcm:unknown", "x")
    io.execute("SET", io.keys.workers(), "x")
    with pytest.raises(errors.WrongTypeOfKey):
        io.execute("HGETALL", io.keys.workers())
    assert io.execute("TYPE", io.keys.workers()) == b"string"
