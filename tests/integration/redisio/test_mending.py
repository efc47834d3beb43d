"""Tests that keys of a wrong type are moved aside, and that their contents are built again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.coordination.workqueue import QueueConfig, WorkQueue
from kcm.redisio import RedisIO
from kcm.redisio.mending import mend, type_of
from kcm.store import DeleteOptions, Store
from tests.new_objects import pod

PODS = BUILT_IN.lookup("pods")


@pytest.fixture
def store(io: RedisIO) -> Store:
    store = Store(io)
    for name in "abc":
        store.create(pod(name, node_name="n"))
    return store


def retry(step: Callable[[], object]) -> None:
    """Calls `step` twice, as loops do: the first call fails, the second succeeds."""
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
    known = [type_of(name.removeprefix("kcm:")) for name in io.scan("kcm:*")]
    assert {"zset", "set", "hash", "string", "stream", "list"} <= set(known)


@pytest.mark.parametrize("value", [("SET", "x"), ("RPUSH", "x"), ("HSET", "x", "y")])
@pytest.mark.parametrize("key", ["keys:pods", "index:node:n", "watch:pods", "last_rv", "trimmed"])
def test_writes_go_on(store: Store, key: str, value: tuple[str, ...]) -> None:
    io, name = store.io, f"kcm:{key}"
    if type_of(key) == "hash" and value[0] == "HSET":
        return
    io.execute("DEL", name)
    io.execute(value[0], name, *value[1:])
    retry(lambda: store.create(pod("d", node_name="n")))
    assert [obj.name for obj in store.list(PODS).items] == ["a", "b", "c", "d"]
    assert len(store.by_index("node:n", PODS)) == 4
    assert [name for name in io.scan("kcm:*:aside:*") if name.startswith(f"kcm:{key}:aside:")]


def test_a_plain_command_leads_to_mending_too(store: Store) -> None:
    io = store.io
    io.execute("SET", io.keys.events(), "x")
    retry(lambda: io.execute("XADD", io.keys.events(), "*", "a", "b"))


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


def damage(io: RedisIO, key: str) -> None:
    """Replaces what kcm keeps under a key with a string."""
    io.execute("DEL", key)
    io.execute("SET", key, "x")


@pytest.mark.parametrize("harm", [("DEL",), ("SET", "x"), ("RPUSH", "x")])
def test_no_cache_passes_for_fresh_after_the_last_versions_were_lost(
    store: Store, harm: tuple[str, ...]
) -> None:
    io, name = store.io, store.io.keys.last_rv()
    newest = store.last_rvs([PODS])
    assert newest == {PODS: store.resource_version()}
    io.execute("DEL", name)
    io.execute(harm[0], name, *harm[1:])
    if harm[0] != "DEL":
        with pytest.raises(errors.WrongTypeOfKey):
            store.last_rvs([PODS])
    assert store.last_rvs([PODS]) == newest
    assert not store.read_changes({PODS: newest[PODS]}, 0).gone


def test_last_versions_that_were_lost_with_the_log_are_reached_by_a_list_only(
    store: Store,
) -> None:
    io, position = store.io, store.resource_version()
    io.execute("DEL", io.keys.last_rv(), io.keys.watch("pods"))
    wanted = store.last_rvs([PODS])[PODS]
    assert wanted > position
    assert store.read_changes({PODS: position}, 0).gone == {PODS}
    assert store.list_all(PODS).resource_version >= wanted


def test_versions_of_kinds_that_were_never_written_are_none_that_were_lost(io: RedisIO) -> None:
    store = Store(io)
    before = store.resource_version()
    assert store.last_rvs([PODS]) == {PODS: 0}
    assert store.resource_version() == before


@pytest.mark.parametrize("key", ["keys:pods", "index:node:n"])
def test_nobody_reads_a_short_list_while_it_is_made_again(store: Store, key: str) -> None:
    io, newest = store.io, store.resource_version()

    def look() -> None:
        with pytest.raises(errors.WrongTypeOfKey):
            list(store.list_all(PODS).objects) if key == "keys:pods" else store.by_index("node:n")

    io.mend()  # so that the look does not mend
    damage(io, f"kcm:{key}")
    assert mend(Interrupted(io, look)) == [f"kcm:{key}"]
    assert [obj.name for obj in store.list_all(PODS).objects] == ["a", "b", "c"]
    assert len(store.by_index("node:n", PODS)) == 3
    assert not store.read_changes({PODS: newest}, 0).gone


def test_whoever_reads_from_behind_a_trimmed_log_is_told_although_that_was_lost(
    store: Store,
) -> None:
    io, behind, newest = store.io, 1, store.resource_version()
    io.execute("XTRIM", io.keys.watch("pods"), "MAXLEN", 1)
    damage(io, io.keys.trimmed())
    mend(io)
    assert store.read_changes({PODS: behind}, 0).gone == {PODS}
    assert not store.read_changes({PODS: newest - 1}, 0).gone
    assert not store.read_changes({PODS: newest}, 0).gone


def test_what_one_process_made_again_is_not_moved_aside_by_another(store: Store) -> None:
    io = store.io
    names = [io.keys.object_keys("pods"), io.keys.index("node:n"), io.keys.last_rv()]
    for name in names:
        damage(io, name)
    late = Interrupted(io, lambda: mend(io))
    assert mend(late) == []
    assert len(list(io.scan("kcm:*:aside:*"))) == len(names)
    assert not list(io.scan("kcm:*:anew:*"))
    assert [obj.name for obj in store.list(PODS).items] == ["a", "b", "c"]


def test_an_object_stays_whole_when_one_of_its_indexes_cannot_be_changed(store: Store) -> None:
    io = store.io
    damage(io, io.keys.index("node:n"))
    with pytest.raises(errors.WrongTypeOfKey):
        store.delete(PODS, "default/a", DeleteOptions(grace_period_seconds=0))
    assert store.get(PODS, "default/a").name == "a"
    store.delete(PODS, "default/a", DeleteOptions(grace_period_seconds=0))
    assert [obj.name for obj in store.list(PODS).items] == ["b", "c"]


class Interrupted:
    """A connection on which another process mends the keys after this one has found them
    damaged.
    """

    def __init__(self, io: RedisIO, overtake: Callable[[], object]) -> None:
        self.keys = io.keys
        self._io = io
        self._overtake: Callable[[], object] | None = overtake

    def scan(self, pattern: str) -> Iterator[str]:
        return self._io.scan(pattern)

    def pipeline_each(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        overtake = self._overtake
        if overtake is not None and commands[0][0] == "EVAL":
            self._overtake = None
            overtake()
        return self._io.pipeline_each(commands)

    def call(self, name: str, *args: str, call_id: str | None = None) -> list[str]:
        return self._io.call(name, *args, call_id=call_id)
