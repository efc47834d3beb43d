"""The watch cache over a real store, pass by pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Namespace, Pod
from kcm.api.scheme import BUILT_IN, Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache import cacher as module
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.recent_writes import RecentWrites
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.apiserver.http_errors import TooLargeResourceVersion
from kcm.redisio import RedisIO
from kcm.store import Changes, Store, WatchEntry, damage
from kcm.store.admission import namespaces
from kcm.store.watch import Retention, trim
from kcm.testing.clock import FakeClock
from tests import new_objects as strip_store_fields
from tests.integration.apiserver.definitions import crontabs

PODS = Pod.resource


def do_nothing() -> None:
    return


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


@pytest.fixture
def cacher(store: Store) -> Cacher:
    return Cacher(store)


def keys(cacher: Cacher) -> list[str]:
    return [entry.key for entry in cacher.cache(PODS).entries()]


def test_objects_are_listed_once_and_then_followed(store: Store, cacher: Cacher) -> None:
    store.create(strip_store_fields.pod("a"))
    cacher.turn(0)
    assert cacher.filled
    _, watcher = cacher.cache(PODS).subscribe(store.resource_version(), "", do_nothing)
    store.create(strip_store_fields.pod("b"))
    store.delete(PODS, "default/a")
    cacher.turn(0)
    assert keys(cacher) == ["default/b"]
    assert [event.type for event in watcher.pending] == ["ADDED", "DELETED"]


def test_only_the_passes_after_the_first_wait_for_changes(
    store: Store, cacher: Cacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    read_changes = store.read_changes

    def note(positions: Mapping[Resource, int], block_ms: int) -> Changes:
        waits.append(block_ms)
        return read_changes(positions, 0)

    monkeypatch.setattr(store, "read_changes", note)
    unfilled = cacher.wait_filled(0)
    cacher.turn(5)
    assert (unfilled, cacher.wait_filled(0), set(waits)) == (False, True, {0})
    cacher.turn(5)
    assert waits[-1] == 5000


def test_a_kind_that_is_new_does_not_make_a_filled_cacher_unready(
    store: Store, cacher: Cacher
) -> None:
    unfilled = cacher.filled
    cacher.turn(0)
    definition = crontabs("ready.example")
    conditions = [{"type": kind, "status": "True"} for kind in ("NamesAccepted", "Established")]
    status = {
        "acceptedNames": definition["spec"]["names"],
        "conditions": conditions,
        "storedVersions": ["v1"],
    }
    item = store.items.build_create(
        codec.decode(definition | {"status": status}, BUILT_IN), keep_status=True
    )
    store.write([item])[0].get_stored()
    cacher.turn(0)  # the kind is served now, and its cache is not filled
    assert cacher.cache(store.scheme.by_name("crontabs.ready.example")).position < 0
    assert (unfilled, cacher.filled) == (False, True)


class TestWhatTheServerWrote:
    """Tests a cacher that is told what its process writes."""

    @pytest.fixture
    def recent(self) -> RecentWrites:
        return RecentWrites()

    @pytest.fixture
    def writer(self, io: RedisIO, recent: RecentWrites) -> Store:
        return Store(io, sending=recent.note)

    @pytest.fixture
    def cacher(self, store: Store, recent: RecentWrites) -> Cacher:
        cacher = Cacher(store, recent=recent)
        cacher.turn(0)
        return cacher

    @pytest.fixture
    def decoded(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        decode, keys = damage.decode_change, list[str]()

        def decode_and_note(change: WatchEntry) -> KubeObject | None:
            keys.append(f"{change.type} {change.key}")
            return decode(change)

        monkeypatch.setattr(damage, "decode_change", decode_and_note)
        return keys

    def test_is_not_decoded_to_be_passed_on(
        self, writer: Store, cacher: Cacher, decoded: list[str]
    ) -> None:
        writer.create(strip_store_fields.pod("a"))
        cacher.turn(0)
        writer.modify(PODS, "default/a", lambda old: old.with_metadata(labels={"x": "y"}))
        cacher.turn(0)
        entry = cacher.cache(PODS).get("default/a")
        assert entry is not None
        assert entry.raw == writer.get_raw(PODS, "default/a")
        assert entry.obj == writer.get(PODS, "default/a")
        writer.delete(PODS, "default/a")
        cacher.turn(0)
        assert keys(cacher) == []
        assert [one for one in decoded if "default/a" in one] == []

    def test_is_told_from_what_others_wrote_over_it(
        self, io: RedisIO, store: Store, writer: Store, cacher: Cacher, decoded: list[str]
    ) -> None:
        writer.create(strip_store_fields.pod("a"))
        store.modify(PODS, "default/a", lambda old: old.with_metadata(labels={"x": "y"}))
        cacher.turn(0)
        assert decoded[-1] == "MODIFIED default/a"
        raw = store.get_raw(PODS, "default/a")
        writer.modify(PODS, "default/a", lambda old: old.with_metadata(labels={"x": "z"}))
        io.execute("DEL", io.keys.watch("pods"))  # somebody puts another entry in its place
        forged = raw.replace(b'"uid":"', b'"uid":1,"was":"')
        entry = f"{store.resource_version()}-0"
        fields = ("type", "MODIFIED", "key", "default/a", "object", forged)
        io.execute("XADD", io.keys.watch("pods"), entry, *fields)
        cacher.turn(0)
        assert [line.raw for line in cacher.cache(PODS).entries()] == [raw]


@pytest.mark.parametrize("page", [2, 500])
def test_what_is_written_while_kinds_are_listed_is_in_the_caches(
    store: Store, cacher: Cacher, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(module, "PAGE", page)  # of 2: the pods are many
    for name in ("a", "b", "c"):
        store.create(strip_store_fields.pod(name))
    count_objects = store.count_objects

    def count_and_write(resources: Sequence[Resource]) -> Mapping[Resource, int]:
        counts = count_objects(resources)
        namespaces.ensure(store)
        store.create(strip_store_fields.pod("d"))
        store.delete(PODS, "default/a")
        return counts

    monkeypatch.setattr(store, "count_objects", count_and_write)
    cacher.turn(0)
    assert keys(cacher) == ["default/b", "default/c", "default/d"]
    cached = cacher.cache(Namespace.resource).entries()
    assert "default" in [entry.key for entry in cached]
    assert cacher.filled


def test_what_was_trimmed_unread_is_listed_again_and_watchers_are_told(
    io: RedisIO, store: Store, cacher: Cacher
) -> None:
    cacher.turn(0)
    _, watcher = cacher.cache(PODS).subscribe(store.resource_version(), "", do_nothing)
    for name in ("a", "b"):
        store.create(strip_store_fields.pod(name))
    trim(io, [PODS], Retention(timedelta(0), 0))
    cacher.turn(0)
    cacher.turn(0)
    assert keys(cacher) == ["default/a", "default/b"]
    assert watcher.gone
    with pytest.raises(errors.Gone):
        cacher.cache(PODS).subscribe(1, "", do_nothing)


def test_freshness_waits_for_the_store_and_no_longer_than_told(
    store: Store, cacher: Cacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FRESH_TIMEOUT", 0.01)
    with pytest.raises(errors.StoreUnavailable):
        cacher.wait_until_filled(PODS)
    cacher.turn(0)
    assert cacher.wait_until_fresh(PODS) == store.resource_version()
    store.create(strip_store_fields.pod("a"))
    with pytest.raises(errors.StoreUnavailable):
        cacher.wait_until_fresh(PODS)
    cacher.turn(0)
    assert cacher.wait_for_version(PODS, 1) >= 1
    with pytest.raises(TooLargeResourceVersion):
        cacher.wait_for_version(PODS, 10**9)


def test_the_systems_namespaces_are_made_once(store: Store) -> None:
    namespaces.ensure(store)
    version = store.resource_version()
    namespaces.ensure(store)
    assert store.resource_version() == version
    assert store.count(Namespace.resource) == 4


class TestPast:
    """The changes from before the cache was filled."""

    def test_a_cache_that_is_filled_has_them(self, store: Store, cacher: Cacher) -> None:
        version = store.resource_version()
        first = store.create(strip_store_fields.pod("a"))
        store.delete(PODS, "default/a")
        store.create(strip_store_fields.pod("b"))
        cacher.turn(0)
        _, watcher = cacher.cache(PODS).subscribe(version, "", do_nothing)
        came = [(event.type, event.entry.key) for event in watcher.pending]
        assert came == [("ADDED", "default/a"), ("DELETED", "default/a"), ("ADDED", "default/b")]
        assert watcher.pending[0].entry.obj.metadata.uid == first.metadata.uid

    def test_foreign_entries_are_left_out_but_no_deletion_is(
        self, store: Store, cacher: Cacher
    ) -> None:
        version = store.resource_version()
        store.create(strip_store_fields.pod("a"))
        log = store.io.keys.watch("pods")
        rest = {"key": "default/a", "object": "rubbish"}
        for kind in ("MODIFIED", "DELETED"):
            at = store.resource_version() + 1
            store.io.execute("SET", store.io.keys.resource_version(), at)
            fields = [part for pair in rest.items() for part in pair]
            store.io.execute("XADD", log, f"{at}-0", "type", kind, *fields)
        cacher.turn(0)
        _, watcher = cacher.cache(PODS).subscribe(version, "", do_nothing)
        assert [event.type for event in watcher.pending] == ["ADDED", "DELETED"]
        assert watcher.pending[1].entry.obj.metadata.name == "a"


def test_old_changes_are_forgotten_within_six_minutes(store: Store) -> None:
    clock = FakeClock()
    cacher = Cacher(store, clock)
    cacher.turn(0)
    before = store.resource_version()
    store.create(strip_store_fields.pod("a"))
    for _ in range(10):
        cacher.turn(0)
        clock.step(30)
    cacher.cache(PODS).subscribe(before, "", do_nothing)
    for _ in range(3):
        cacher.turn(0)
        clock.step(30)
    with pytest.raises(errors.Gone):
        cacher.cache(PODS).subscribe(before, "", do_nothing)


def test_a_cache_may_be_added_while_old_changes_are_forgotten(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests for a kind that has just been defined add its cache, in threads of their own."""
    clock = FakeClock()
    cacher = Cacher(store, clock)
    cacher.turn(0)
    ages: list[WatchCache] = []

    def age(cache: WatchCache) -> None:
        cacher._caches[f"added{len(ages)}"] = WatchCache(PODS)
        ages.append(cache)

    monkeypatch.setattr(WatchCache, "age", age)
    clock.step(30)
    cacher.turn(0)
    assert len(ages) == len(BUILT_IN.resources())
