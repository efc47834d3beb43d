"""Tests reads and trims of the watch log, also when other clients have changed it."""

from __future__ import annotations

import random
import threading

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import DeleteOptions, Store
from kcm.store.watch import Retention, trim
from kcm.testing.clock import FakeClock
from tests.new_objects import node, pod

PODS = Pod.resource
NODES = BUILT_IN.lookup("nodes")


def read_changes_after(store: Store, position: int = 0) -> list[tuple[str, str]]:
    changes = store.read_changes({PODS: position}, 0)
    return [(change.type, change.key) for change in changes.entries]


def test_every_write_is_one_entry_in_order(store: Store) -> None:
    store.create(pod("a"))
    store.patch(PODS, "default/a", {"metadata": {"labels": {"x": "y"}}})
    store.delete(PODS, "default/a")
    assert read_changes_after(store) == [
        ("ADDED", "default/a"),
        ("MODIFIED", "default/a"),
        ("DELETED", "default/a"),
    ]


def test_entries_carry_the_object_with_its_version(store: Store) -> None:
    stored = store.create(pod("a"))
    change = store.read_changes({PODS: 0}, 0).entries[0]
    assert f'"resourceVersion":"{stored.metadata.resource_version}"'.encode() in change.raw
    assert change.resource_version == int(stored.metadata.resource_version or 0)


@pytest.mark.redis_only
def test_a_read_blocks_until_something_is_written(store: Store, settings: Settings) -> None:
    positions: list[str] = []
    reader = threading.Thread(
        target=lambda: positions.extend(c.key for c in store.read_changes({PODS: 0}, 4000).entries)
    )
    reader.start()
    Store(RedisIO(settings)).create(pod("a"))
    reader.join(4)
    assert positions == ["default/a"]


@pytest.mark.redis_only
def test_a_reader_behind_the_trimmed_part_is_told(store: Store, io: RedisIO) -> None:
    for number in range(10):
        store.create(pod(f"p{number}"))
    trim(io, [PODS], Retention(entries=4))
    assert PODS in store.read_changes({PODS: 3}, 0).gone
    assert [key for _, key in read_changes_after(store, 7)] == [
        f"default/p{n}" for n in (6, 7, 8, 9)
    ]


@pytest.mark.redis_only
def test_a_reader_at_the_end_is_not_told_when_all_is_trimmed(store: Store, io: RedisIO) -> None:
    store.create(pod("a"))
    store.create(pod("b"))
    trim(io, [PODS], Retention(entries=0))
    assert store.read_changes({PODS: 3}, 0).gone == frozenset()
    assert PODS in store.read_changes({PODS: 2}, 0).gone


@pytest.mark.redis_only
def test_age_trims_what_was_written_before_an_old_enough_pass(store: Store, io: RedisIO) -> None:
    store.create(pod("old"))
    trim(io, [PODS])
    io.clock_offset_ms = 200_000
    store.create(pod("young"))
    trim(io, [PODS])
    assert [key for _, key in read_changes_after(store, 2)] == ["default/young"]
    io.clock_offset_ms = 310_000
    assert trim(io, [PODS]) == {"pods": 1}
    assert PODS in store.read_changes({PODS: 0}, 0).gone
    assert [key for _, key in read_changes_after(store, 2)] == ["default/young"]


@pytest.mark.redis_only
class TestForeignEntries:
    def test_without_our_fields_are_skipped_but_counted(self, store: Store, io: RedisIO) -> None:
        store.create(pod("a"))
        io.execute("XADD", io.keys.watch("pods"), "5-0", "hello", "world")
        changes = store.read_changes({PODS: 0}, 0)
        assert [change.key for change in changes.entries] == ["default/a"]
        assert changes.positions[PODS] == 5

    def test_make_the_counter_jump_past_their_id(self, store: Store, io: RedisIO) -> None:
        io.execute("XADD", io.keys.watch("pods"), "1000-7", "x", "y")
        stored = store.create(pod("a"))
        assert int(stored.metadata.resource_version or 0) == 1001
        assert int(store.create(node("n")).metadata.resource_version or 0) == 1002

    @pytest.mark.parametrize("entry", ["9007199254740993-0", "18446744073709551615-1"])
    def test_of_a_hopeless_id_put_the_stream_aside(
        self, store: Store, io: RedisIO, entry: str
    ) -> None:
        store.create(pod("a"))
        io.execute("XADD", io.keys.watch("pods"), entry, "x", "y")
        assert PODS in store.read_changes({PODS: 0}, 0).gone
        stored = store.create(pod("b"))
        version = int(stored.metadata.resource_version or 0)
        assert version < 100
        assert PODS in store.read_changes({PODS: 0}, 0).gone
        assert store.list(PODS).resource_version >= version
        store.create(pod("c"))
        assert [key for _, key in read_changes_after(store, version)] == ["default/c"]

    def test_a_key_of_another_type_is_an_error_and_writes_nothing(
        self, store: Store, io: RedisIO
    ) -> None:
        io.execute("SET", io.keys.object_keys("pods"), "rubbish")
        with pytest.raises(errors.KcmError, match="holds a string, not a zset"):
            store.create(pod("a"))
        assert io.execute("EXISTS", io.keys.object("pods", "default/a")) == 0
        assert io.execute("EXISTS", io.keys.watch("pods")) == 0
        store.create(node("n"))


@pytest.mark.parametrize("seed", range(25))
def test_list_then_watch_loses_nothing(store: Store, settings: Settings, seed: int) -> None:
    """Each of 20 rounds lists in pages and then reads the log, while a writer writes at random."""
    rng = random.Random(seed)
    writer = Store(RedisIO(settings), FakeClock())
    for round_ in range(20):
        token, listed, version = "", {}, None
        while True:
            page = store.list(PODS, limit=3, continue_=token)
            version = page.resource_version if version is None else version
            listed.update({obj.key: obj.metadata.resource_version for obj in page.items})
            _write_something(writer, rng, round_)
            token = page.continue_
            if not token:
                break
        _write_something(writer, rng, round_)
        assert _replay(store, listed, version) == _truth(store)


def _write_something(writer: Store, rng: random.Random, round_: int) -> None:
    for _ in range(rng.randrange(4)):
        name = f"p{rng.randrange(12)}"
        try:
            match rng.randrange(3):
                case 0:
                    writer.create(pod(name))
                case 1:
                    labels = {"n": str(rng.random())}
                    writer.patch(PODS, f"default/{name}", {"metadata": {"labels": labels}})
                case _:
                    writer.delete(PODS, f"default/{name}", DeleteOptions(grace_period_seconds=0))
        except (errors.AlreadyExists, errors.NotFound):
            pass


def _replay(store: Store, listed: dict[str, str | None], version: int) -> dict[str, str | None]:
    state = dict(listed)
    changes = store.read_changes({PODS: version}, 0)
    assert not changes.gone
    for change in changes.entries:
        known = int(state.get(change.key) or 0)
        if change.resource_version < known:
            continue
        if change.type == "DELETED":
            state.pop(change.key, None)
        else:
            state[change.key] = str(change.resource_version)
    return state


def _truth(store: Store) -> dict[str, str | None]:
    return {obj.key: obj.metadata.resource_version for obj in store.list(PODS).items}
