"""Tests that a key of a wrong type is named by what needs it, and costs nothing else."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Pod
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apiserver.cache.cacher import Cacher
from kcm.coordination import FencedLease
from kcm.coordination.workqueue import (
    Addition,
    Pump,
    QueueConfig,
    Reaper,
    WorkQueue,
    dispatch,
    read_stats,
)
from kcm.informers.follower import Follower
from kcm.redisio import RedisIO
from kcm.redisio.broker_keys import delete_wrong_keys
from kcm.store import DeleteOptions, Store
from tests.new_objects import pod

PODS = BUILT_IN.lookup("pods")
MAPS = ConfigMap.resource


@pytest.fixture
def store(io: RedisIO) -> Store:
    store = Store(io)
    for name in "abc":
        store.create(pod(name, node_name="n"))
    store.create(config_map("m"))
    return store


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))


def damage(io: RedisIO, key: str) -> None:
    """Replaces what kcm keeps under a key with a string."""
    io.execute("DEL", key)
    io.execute("SET", key, "x")


@pytest.mark.parametrize("value", [("SET", "x"), ("RPUSH", "x"), ("HSET", "x", "y")])
@pytest.mark.parametrize("key", ["keys:pods", "index:node:n", "watch:pods", "queue:q:waiting"])
def test_a_call_that_needs_the_key_names_it_and_works_once_it_is_deleted(
    store: Store, key: str, value: tuple[str, ...]
) -> None:
    io, name = store.io, f"kcm:{key}"
    queue = WorkQueue(io, "q")
    queue.configure(QueueConfig(task="t", broker_queue="b"))
    io.execute("DEL", name)
    io.execute(value[0], name, *value[1:])

    def use() -> None:
        if key.startswith("queue:"):
            queue.add("a")
        else:
            store.create(pod("d", node_name="n"))

    with pytest.raises(errors.WrongTypeOfKey, match=name) as caught:
        use()
    assert "kcm redis-cli DEL" in caught.value.message
    store.create(config_map("other"))
    io.execute("DEL", name)
    use()


def make_queue(io: RedisIO, name: str) -> WorkQueue:
    queue = WorkQueue(io, name)
    queue.configure(QueueConfig(task=f"t.{name}", broker_queue="b"))
    return queue


def test_a_queue_with_a_key_of_a_wrong_type_costs_no_other_one(io: RedisIO) -> None:
    bad, _ = make_queue(io, "bad"), make_queue(io, "good")
    io.execute("ZADD", "kcm:queue:good:delayed", 1, "delayed")
    bad.add_after("a", 60)
    for part in ("waiting", "delayed"):
        damage(io, f"kcm:queue:bad:{part}")
    lease = FencedLease(io, "dispatch:pods", "me")
    lease.try_acquire()
    additions = [Addition("bad", ("x",)), Addition("good", ("y",))]
    with pytest.raises(errors.WrongTypeOfKey, match="kcm:queue:bad:waiting"):
        dispatch(io, lease.fence, {"pods": 7}, additions)
    for loop in (Pump(io), Reaper(io)):
        with pytest.raises(errors.WrongTypeOfKey, match="kcm:queue:bad:"):
            loop.once()
    assert set(io.execute("ZRANGE", "kcm:queue:good:waiting", 0, -1)) == {b"delayed", b"y"}
    assert [stats.name for stats in read_stats(io)] == ["good"]
    assert io.execute("HGETALL", "kcm:dispatch:position") == {}
    io.execute("DEL", "kcm:queue:bad:waiting", "kcm:queue:bad:delayed")
    dispatch(io, lease.fence, {"pods": 7}, additions)
    assert [taken.key for taken in bad.take()] == ["x"]


def test_plain_commands_name_the_key(store: Store) -> None:
    io, name = store.io, store.io.keys.events()
    io.execute("SET", name, "x")
    with pytest.raises(errors.WrongTypeOfKey, match=name):
        io.execute("XADD", name, "*", "a", "b")
    with pytest.raises(errors.WrongTypeOfKey, match=name):
        io.pipeline([("PING",), ("XLEN", name)])


def test_guards_name_the_key_and_fail_their_own_item_only(store: Store) -> None:
    io = store.io
    damage(io, io.keys.object("namespaces", "default"))
    with pytest.raises(errors.KcmError, match="kcm:object:namespaces:default"):
        store.create(config_map("n"))
    assert store.get(MAPS, "default/m").name == "m"


def test_a_watch_log_of_a_wrong_type_costs_its_kind_only(store: Store) -> None:
    io, position = store.io, store.resource_version()
    damage(io, io.keys.watch("pods"))
    store.create(config_map("n"))
    with capture_logs() as logs:
        for _ in range(2):
            changes = store.read_changes({PODS: position, MAPS: position}, 0)
            assert [change.key for change in changes.entries] == ["default/n"]
            assert changes.positions.keys() == {MAPS}
    assert [line["key"] for line in logs] == [io.keys.watch("pods")]
    with pytest.raises(errors.WrongTypeOfKey, match="kcm:watch:pods"):
        store.read_changes({PODS: position}, 0)


def test_a_kind_is_listed_again_once_its_watch_log_was_deleted(store: Store) -> None:
    io = store.io
    cacher = Cacher(store)
    cacher.turn(0.0)
    damage(io, io.keys.watch("pods"))
    cacher.turn(0.0)
    io.execute("DEL", io.keys.watch("pods"))
    store.create(pod("d", node_name="n"))
    for _ in range(2):
        cacher.turn(0.0)
    assert cacher.cache(Pod.resource).get("default/d") is not None


def test_a_list_of_a_wrong_type_costs_its_kind_only(store: Store) -> None:
    io = store.io
    damage(io, io.keys.object_keys("pods"))
    cacher = Cacher(store)
    with capture_logs() as logs:
        for _ in range(3):
            cacher.turn(0.0)
    assert cacher.filled
    assert cacher.cache(MAPS).get("default/m") is not None
    (line,) = (line for line in logs if line["event"] == "A kind cannot be listed")
    assert "kcm:keys:pods" in line["error"]
    with pytest.raises(errors.WrongTypeOfKey, match="kcm:keys:pods"):
        store.list(PODS)
    io.execute("DEL", io.keys.object_keys("pods"))
    cacher.turn(0.0)
    assert cacher.cache(Pod.resource).position > 0


def test_a_follower_goes_on_with_the_kinds_that_can_be_read(store: Store) -> None:
    seen: list[str] = []

    class Target:
        def list_kinds(self, kinds):  # type: ignore[no-untyped-def] # a part of the protocol
            return dict.fromkeys(kinds, store.resource_version())

        def apply_changes(self, kind, changes, resource_version):  # type: ignore[no-untyped-def]
            seen.extend(change.key for change in changes)

    follower = Follower(store, Target(), [PODS, MAPS])
    follower.read(0.0)
    damage(store.io, store.io.keys.watch("pods"))
    store.create(config_map("n"))
    follower.read(0.0)
    assert seen == ["default/n"]


def test_an_object_stays_whole_when_one_of_its_indexes_cannot_be_changed(store: Store) -> None:
    io = store.io
    damage(io, io.keys.index("node:n"))
    at_once = DeleteOptions(grace_period_seconds=0)
    with pytest.raises(errors.WrongTypeOfKey, match="kcm:index:node:n"):
        store.delete(PODS, "default/a", at_once)
    assert store.get(PODS, "default/a").name == "a"
    io.execute("DEL", io.keys.index("node:n"))
    store.delete(PODS, "default/a", at_once)
    assert [obj.name for obj in store.list(PODS).items] == ["b", "c"]


@pytest.mark.parametrize("harm", ["DEL", "SET"])
def test_last_versions_that_were_lost_are_restored_from_the_logs(store: Store, harm: str) -> None:
    io, name = store.io, store.io.keys.last_rv()
    newest = store.last_rvs([PODS])
    io.execute("DEL", name)
    if harm == "SET":
        io.execute("SET", name, "x")
        with pytest.raises(errors.WrongTypeOfKey, match=name):
            store.last_rvs([PODS])
        io.execute("DEL", name)
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


def test_whoever_reads_from_behind_a_trimmed_log_is_told_although_both_records_were_lost(
    store: Store,
) -> None:
    io, behind, newest = store.io, 1, store.last_rvs([PODS])[PODS]
    io.execute("XTRIM", io.keys.watch("pods"), "MAXLEN", 1)
    io.execute("DEL", io.keys.trimmed(), io.keys.last_rv())
    store.last_rvs([PODS])
    assert store.read_changes({PODS: behind}, 0).gone == {PODS}
    assert not store.read_changes({PODS: newest - 1}, 0).gone


def test_keys_of_the_broker_are_deleted_when_they_are_none_of_its_own(io: RedisIO) -> None:
    prefix = io.keys.broker_prefix()
    io.execute("SET", f"{prefix}workloads", "x")
    io.execute("SET", f"{prefix}unacked", "x")
    io.execute("LPUSH", f"{prefix}batch", "message")
    with capture_logs() as logs:
        delete_wrong_keys(io, ["workloads", "batch", "none"])
    assert {line["key"] for line in logs} == {f"{prefix}workloads", f"{prefix}unacked"}
    assert list(io.scan(f"{prefix}*")) == [f"{prefix}batch"]
