"""Tests that an object that cannot be read affects no other object, for every kind of damage and
every reader.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.cli.backup_files import backup, restore
from kcm.cli.main import main
from kcm.clock import RealClock
from kcm.kubelet.config.api import ApiSource
from kcm.kubelet.types import PodUpdate
from kcm.loops import ThreadHost
from kcm.redisio import RedisIO
from kcm.store import Store, damage
from kcm.store.reader import StoreReader
from kcm.testing.waiting import until
from tests.integration.store.damages import DAMAGES, Damage
from tests.new_objects import pod

pytestmark = pytest.mark.redis_only

PODS = BUILT_IN.lookup("pods")
KEY = "default/bad"
every_damage = pytest.mark.parametrize("harm", DAMAGES.values(), ids=list(DAMAGES))


@pytest.fixture
def store(io: RedisIO) -> Store:
    store = Store(io)
    for name in ("a", "bad", "c"):
        store.create(pod(name, node_name="n"))
    return store


@pytest.fixture
def names() -> list[str]:
    return ["a", "c"]


def damaged_keys(store: Store) -> list[str]:
    return [key for _, key in damage.read_damaged(store.io)]


@every_damage
class TestReaders:
    @pytest.fixture(autouse=True)
    def harmed(self, store: Store, harm: Damage) -> None:
        harm(store.io, store.io.keys.object("pods", KEY))

    def test_lists_have_the_others(self, store: Store, names: list[str]) -> None:
        assert [obj.name for obj in store.list(PODS).items] == names
        assert [obj.name for obj in store.list_all(PODS).objects] == names
        assert [obj.name for obj in store.in_namespace(PODS, "default")] == names
        first = store.list(PODS, limit=1)
        rest = store.list(PODS, limit=1, continue_=first.continue_)
        assert [obj.name for obj in (*first.items, *rest.items)] == names
        assert damaged_keys(store) == [KEY]

    def test_it_is_named_and_others_are_read(self, store: Store) -> None:
        with pytest.raises(errors.Damaged, match="default/bad"):
            store.get(PODS, KEY)
        objects = store.get_all([(PODS, "default/a"), (PODS, KEY), (PODS, "default/c")])
        assert [obj and obj.name for obj in objects] == ["a", None, "c"]
        assert damaged_keys(store) == [KEY]

    def test_a_kubelet_has_its_other_pods(self, store: Store, names: list[str]) -> None:
        updates: list[PodUpdate] = []
        source = ApiSource(store, "n", updates.append)
        source.turn(0.0)
        assert sorted(each.name for each in updates[-1].pods) == names

    def test_a_backup_has_the_others(
        self, store: Store, io: RedisIO, tmp_path: Path, names: list[str]
    ) -> None:
        backup(store, tmp_path / "b", RealClock().now())
        io.execute("FLUSHALL")
        io.attach()
        restore(store, tmp_path / "b")
        assert [obj.name for obj in store.list(PODS).items] == names

    def test_it_can_be_deleted_and_made_again(self, store: Store) -> None:
        version = store.resource_version()
        store.delete(PODS, KEY)
        changes = store.read_changes({PODS: version}, 0).entries
        assert [(change.type, change.key) for change in changes] == [("DELETED", KEY)]
        with pytest.raises(errors.NotFound):
            store.get(PODS, KEY)
        assert store.count(PODS) == 2
        assert ("pods", KEY) not in store.by_index("node:n")
        assert damaged_keys(store) == []
        store.create(pod("bad", node_name="n"))
        assert store.count(PODS) == 3

    def test_its_namespace_can_be_emptied(self, store: Store) -> None:
        for _ in range(2):
            deletion = store.delete_collection(PODS, "default")
        for obj in store.list(PODS).items:
            store.io.execute("DEL", store.io.keys.object("pods", obj.key))
        assert KEY not in damaged_keys(store)
        assert deletion.error is None

    def test_kcm_shows_and_deletes_it(
        self, store: Store, io: RedisIO, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KCM_REDIS_URL", io.settings.effective_redis_url)

        def run(*args: str) -> str:
            done = CliRunner().invoke(main, list(args))
            assert done.exit_code == 0, done.output
            return done.output

        assert "pod/bad" not in run("get", "pods", "-o", "name")
        assert "default/bad" in run("status")
        run("delete", "pod", "bad", "--force", "--grace-period", "0")
        assert "default/bad" not in run("status")


@every_damage
def test_informers_go_on_without_it(store: Store, harm: Damage, names: list[str]) -> None:
    from kcm.informers.factory import SharedInformerFactory

    factory = SharedInformerFactory(store, clock=RealClock())
    harm(store.io, store.io.keys.object("pods", KEY))
    informers = (factory.informer_for(PODS), factory.metadata_informer_for(PODS))
    caches = [informer.get_indexer() for informer in informers]
    factory.start()
    host = ThreadHost()
    host.run(factory.loop)
    try:
        assert factory.wait_for_cache_sync(threading.Event())
        for cache in caches:
            assert sorted(key.partition("/")[2] for key in cache.list_keys()) == names
        store.create(pod("new"))
        store.delete(PODS, KEY)
        until(lambda: all("default/new" in cache.list_keys() for cache in caches), "the new pod")
    finally:
        host.stop()
        factory.shutdown()


ENTRIES = {
    "rubbish": ("type", "MODIFIED", "key", "default/a", "object", "rubbish"),
    "of another": ("type", "MODIFIED", "key", "default/a", "object", '{"metadata":{"name":"x"}}'),
    "a deletion": ("type", "DELETED", "key", "default/x", "object", "rubbish"),
    "new": ("type", "ADDED", "key", "default/x", "object", "[]"),
    "of no type": ("type", "\xff", "key", "\xff", "object", "\xff"),
    "without fields": ("a", "b"),
    "deep": ("type", "MODIFIED", "key", "default/a", "object", "[" * 3000),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_an_entry_that_cannot_be_read_changes_nothing(store: Store, entry: tuple[str, ...]) -> None:
    from kcm.informers.factory import SharedInformerFactory

    factory = SharedInformerFactory(store, clock=RealClock())
    informer = factory.informer_for(PODS)
    factory.start()
    host = ThreadHost()
    host.run(factory.loop)
    try:
        assert factory.wait_for_cache_sync(threading.Event())
        cache = informer.get_indexer()
        version = store.resource_version() + 1
        store.io.execute("XADD", store.io.keys.watch("pods"), f"{version}-0", *entry)
        store.create(pod("new"))
        until(lambda: cache.get_by_key("default/new") is not None, "the new pod")
        assert sorted(obj.name for obj in cache.list()) == ["a", "bad", "c", "new"]
    finally:
        host.stop()
        factory.shutdown()


def test_a_name_that_is_no_text_is_passed_over(store: Store) -> None:
    store.io.execute("ZADD", store.io.keys.object_keys("pods"), 0, b"default/\xff\xfe")
    assert [obj.name for obj in store.list(PODS).items] == ["a", "bad", "c"]


class Overtaken(RedisIO):
    """A connection whose pipelined reads miss every object, as if another client deleted it before
    the read and created it again afterwards; reads in one transaction (`at_once`) see it.
    """

    def pipeline_each(self, commands: Any, **how: Any) -> list[Any]:
        replies = super().pipeline_each(commands, **how)
        early = [None if command[0] == "HGET" else reply
                 for command, reply in zip(commands, replies, strict=True)]  # fmt: skip
        return replies if how.get("at_once") else early


def test_what_is_created_while_it_is_read_is_not_damaged(io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("web"))
    reader = StoreReader(Overtaken(io.settings))
    assert reader.get(PODS, "default/web").name == "web"
    assert [obj.name for obj in reader.list(PODS).items] == ["web"]
    assert damaged_keys(store) == []
