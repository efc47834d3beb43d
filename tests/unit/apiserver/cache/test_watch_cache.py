from __future__ import annotations

import json
import weakref
from collections import deque
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apiserver.cache import history, watch_cache
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.history import History
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.store import WatchEntry
from kcm.store.past import Past
from kcm.store.watch import ChangeType

PODS = Pod.resource


def raw(key: str, version: int) -> bytes:
    namespace, name = key.split("/")
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(version)}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return json.dumps(body).encode()


def change(kind: ChangeType, key: str, version: int) -> WatchEntry:
    return WatchEntry(PODS, version, kind, key, raw(key, version))


def fill_cache(*keys: str, position: int = 10, history: int = 100) -> WatchCache[Pod]:
    cache = WatchCache(PODS, History(history))
    cache.refill([Entry(PODS, key, raw(key, 5), 5) for key in keys], position)
    return cache


def keys(entries: Sequence[Entry]) -> list[str]:
    return [entry.key for entry in entries]


def do_nothing() -> None:
    return


def test_entries_come_in_order_by_namespace_and_behind_a_key() -> None:
    cache = fill_cache("b/2", "a/1", "b/1", "ba/1")
    cache.apply([change("ADDED", "b/0", 11), change("DELETED", "b/2", 12)], 12)
    assert keys(cache.entries()) == ["a/1", "b/0", "b/1", "ba/1"]
    assert keys(cache.entries("b")) == ["b/0", "b/1"]
    assert keys(cache.entries("b", after="b/0")) == ["b/1"]
    assert keys(cache.entries(after="b/1")) == ["ba/1"]


def test_what_is_present_comes_with_the_version_that_it_shows() -> None:
    cache = fill_cache("a/1", position=10)
    cache.apply([change("ADDED", "b/1", 12)], 15)
    entries, version = cache.present("b")
    assert (keys(entries), version) == (["b/1"], 15)


def test_a_watcher_gets_history_and_what_comes_after_once() -> None:
    cache = fill_cache()
    cache.apply([change("ADDED", "a/1", 11), change("ADDED", "a/2", 12)], 12)
    _, watcher = cache.subscribe(11, "", do_nothing)
    cache.apply([change("MODIFIED", "a/1", 13)], 13)
    assert [(e.type, e.entry.version) for e in watcher.pending] == [("ADDED", 12), ("MODIFIED", 13)]
    assert watcher.pending[1].before is not None
    assert watcher.pending[1].before.version == 11


def test_a_watcher_without_a_version_begins_with_the_objects() -> None:
    cache = fill_cache("a/1", "b/1")
    present, watcher = cache.subscribe(None, "a", do_nothing)
    assert keys(present) == ["a/1"]
    assert not watcher.pending


def test_a_version_that_is_no_longer_here_is_gone() -> None:
    cache = fill_cache(history=2)
    cache.apply([change("ADDED", f"a/{n}", n) for n in range(11, 15)], 14)
    with pytest.raises(errors.Gone):
        cache.subscribe(11, "", do_nothing)
    _, watcher = cache.subscribe(12, "", do_nothing)
    assert [event.entry.version for event in watcher.pending] == [13, 14]


def test_a_slow_watcher_is_cut_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_cache, "BACKLOG", 2)
    cache = fill_cache()
    woken: list[str] = []
    _, slow = cache.subscribe(10, "", lambda: woken.append("slow"))
    cache.apply([change("ADDED", "a/1", 11), change("ADDED", "a/2", 12)], 12)
    _, quick = cache.subscribe(12, "", do_nothing)
    cache.apply([change("ADDED", "a/3", 13)], 13)
    assert (slow.slow, slow.ended, len(slow.pending)) == (True, True, 0)
    assert not quick.ended
    assert woken == ["slow", "slow"]
    assert cache.watcher_count == 1


def test_a_refill_tells_watchers_that_they_are_too_old() -> None:
    cache = fill_cache("a/1")
    _, watcher = cache.subscribe(10, "", do_nothing)
    cache.refill([], 20)
    assert watcher.gone
    assert (cache.watcher_count, cache.entries()) == (0, [])


def test_waiting_for_a_version_ends_when_it_is_here() -> None:
    cache = fill_cache(position=10)
    assert cache.wait(10, 0)
    assert not cache.wait(11, 0)


def test_the_line_of_an_event_is_made_once() -> None:
    cache = fill_cache()
    _, watcher = cache.subscribe(10, "", do_nothing)
    cache.apply([change("ADDED", "a/1", 11)], 11)
    event = watcher.pending[0]
    assert event.line is event.line
    assert json.loads(event.line)["object"]["metadata"]["name"] == "1"


@given(
    st.lists(st.tuples(st.sampled_from(["a/1", "a/2", "a/3", "b/1"]), st.booleans()), max_size=30),
    st.data(),
)
def test_a_snapshot_is_what_was_there_at_its_version(
    steps: list[tuple[str, bool]], data: st.DataObject
) -> None:
    cache, now, moments = fill_cache(), dict[str, int](), {10: dict[str, int]()}
    for version, (key, there) in enumerate(steps, start=11):
        kind: ChangeType = "DELETED"
        if there:
            kind = "MODIFIED" if key in now else "ADDED"
            now[key] = version
        elif now.pop(key, None) is None:
            continue
        cache.apply([change(kind, key, version)], version)
        moments[version] = dict(now)
    then = data.draw(st.sampled_from(sorted(moments)))
    for namespace, after in (("", ""), ("a", ""), ("", "a/1"), ("a", "a/2")):
        wanted = {
            key: version
            for key, version in sorted(moments[then].items())
            if key > after and key.startswith(namespace)
        }
        entries = cache.snapshot(then, namespace, after)
        assert {entry.key: entry.version for entry in entries} == wanted
        assert keys(entries) == list(wanted)


def test_a_snapshot_older_than_the_history_is_gone() -> None:
    cache = fill_cache(history=1)
    cache.apply([change("ADDED", "a/1", 11), change("ADDED", "a/2", 12)], 12)
    assert keys(cache.snapshot(11)) == ["a/1"]
    with pytest.raises(errors.Gone):
        cache.snapshot(10)


def test_the_history_is_cut_by_its_bytes() -> None:
    size = len(raw("a/1", 11))
    cache = WatchCache(PODS, History(100, 3 * size))
    cache.refill([], 10)
    cache.apply([change("MODIFIED", "a/1", version) for version in range(11, 16)], 15)
    _, watcher = cache.subscribe(12, "", do_nothing)
    assert [event.entry.version for event in watcher.pending] == [13, 14, 15]
    with pytest.raises(errors.Gone):
        cache.subscribe(11, "", do_nothing)


def test_changes_are_forgotten_at_the_twelfth_look_after_they_came() -> None:
    cache = fill_cache("a/0")
    cache.apply([change("MODIFIED", "a/0", 11)], 11)
    for look in range(11):
        cache.age()
        cache.apply([change("MODIFIED", "a/0", 20 + look)], 20 + look)
    assert len(cache.subscribe(10, "", do_nothing)[1].pending) == 12
    cache.age()
    with pytest.raises(errors.Gone):
        cache.subscribe(10, "", do_nothing)
    _, watcher = cache.subscribe(11, "", do_nothing)
    assert [event.entry.version for event in watcher.pending] == list(range(20, 31))
    with pytest.raises(errors.Gone):
        cache.snapshot(10)


def test_changes_that_are_forgotten_do_not_stay_decoded() -> None:
    cache = fill_cache("a/0")
    cache.apply([change("DELETED", "a/0", 11)], 11)
    _, watcher = cache.subscribe(10, "", do_nothing)
    gone = weakref.ref(watcher.pending.pop().entry.obj)
    for _ in range(11):
        cache.age()
    assert gone() is not None
    cache.age()
    assert gone() is None


def test_only_the_newest_changes_and_what_is_present_stay_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "DECODED_BYTES", 2 * len(raw("a/1", 11)))
    cache = fill_cache("a/0")
    present = cache.get("a/0")
    assert present is not None
    objects = [weakref.ref(present.obj)]
    for version in range(11, 16):
        cache.apply([change("MODIFIED", "a/1", version)], version)
        entry = cache.get("a/1")
        assert entry is not None
        objects.append(weakref.ref(entry.obj))
    assert [obj() is not None for obj in objects] == [True, False, False, True, True, True]
    _, watcher = cache.subscribe(10, "", do_nothing)
    assert [event.entry.obj.name for event in watcher.pending] == ["1"] * 5


def test_a_deleted_object_does_not_stay_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "DECODED_BYTES", 1)
    cache = fill_cache("a/0")
    _, watcher = cache.subscribe(10, "", do_nothing)
    cache.apply([change("DELETED", "a/0", 11)], 11)
    event = watcher.pending[0]
    assert event.line
    gone = weakref.ref(event.entry.obj)
    cache.apply([change("ADDED", "a/1", 12)], 12)
    event.forget_decoded()
    assert gone() is None


def test_a_watcher_whose_next_change_has_left_the_history_is_cut() -> None:
    cache = fill_cache(history=3)
    _, reads = cache.subscribe(10, "", do_nothing)
    _, sleeps = cache.subscribe(10, "", do_nothing)
    for first in range(11, 20, 3):  # each fills the history, which is no reason to cut anybody
        cache.apply([change("ADDED", f"a/{n}", n) for n in range(first, first + 3)], first + 2)
        reads.pending.clear()
    assert sleeps.slow
    assert not sleeps.pending
    assert not reads.ended


def test_what_stops_matching_is_deleted_as_it_was_when_it_matched() -> None:
    cache = fill_cache()
    cache.apply([change("ADDED", "a/1", 11), change("MODIFIED", "a/1", 12)], 12)
    _, watcher = cache.subscribe(11, "", do_nothing)
    event = watcher.pending[0]
    assert event.before is not None
    last = event.last_match
    assert last.version == 12
    assert json.loads(last.raw)["metadata"] == json.loads(raw("a/1", 12))["metadata"]
    assert event.before.version == 11
    assert event.last_match is last
    cache.apply([change("DELETED", "a/1", 13)], 13)
    assert watcher.pending[1].last_match is watcher.pending[1].entry


def test_the_version_some_changes_ago_can_be_restored() -> None:
    cache = fill_cache("a/1", position=10, history=3)
    assert cache.version_before(1) == 10
    cache.apply([change("ADDED", f"b/{n}", 10 + n) for n in (1, 3)], 20)
    versions = [cache.version_before(changes) for changes in (1, 2, 3)]
    assert versions == [11, 10, 10]
    assert keys(cache.snapshot(versions[0])) == ["a/1", "b/1"]
    cache.apply([change("ADDED", f"c/{n}", 20 + n) for n in (1, 2)], 22)
    assert cache.oldest_version == cache.version_before(99) == 11
    assert keys(cache.snapshot(11)) == ["a/1", "b/1"]


class TestPast:
    """What the cache has from before its list."""

    CHANGES = (
        change("MODIFIED", "a/1", 12),
        change("ADDED", "a/2", 13),
        change("MODIFIED", "a/2", 14),
        change("DELETED", "a/2", 15),
        change("ADDED", "a/2", 16),
    )

    def fill(self, history: int = 100, floor: int = 11) -> WatchCache[Pod]:
        cache = WatchCache(PODS, History(history))
        entries = [Entry(PODS, key, raw(key, at), at) for key, at in (("a/1", 12), ("a/2", 16))]
        cache.refill(entries, 20, Past(floor, self.CHANGES))
        return cache

    def test_a_watch_begins_there(self) -> None:
        cache = self.fill()
        _, watcher = cache.subscribe(11, "", do_nothing, selects=False)
        assert [(e.type, e.entry.version) for e in watcher.pending] == [
            (each.type, each.resource_version) for each in self.CHANGES
        ]
        assert watcher.position == 20
        assert cache.subscribe(20, "", do_nothing)[1].pending == deque()
        with pytest.raises(errors.Gone):
            cache.subscribe(10, "", do_nothing, selects=False)

    def test_who_selects_begins_where_the_objects_before_are_known(self) -> None:
        cache = self.fill()
        with pytest.raises(errors.Gone):
            cache.subscribe(11, "", do_nothing)
        _, watcher = cache.subscribe(12, "", do_nothing)
        befores = [event.before and event.before.version for event in watcher.pending]
        assert befores == [None, 13, 14, None]
        assert cache.oldest_version == cache.version_before(100) == 12

    def test_lists_show_what_was_there(self) -> None:
        cache = self.fill()
        for version, there in ((12, ["a/1"]), (13, ["a/1", "a/2"]), (15, ["a/1"])):
            assert keys(cache.snapshot(version)) == there
        with pytest.raises(errors.Gone):
            cache.snapshot(11)

    def test_it_is_part_of_the_history(self) -> None:
        cache = self.fill(history=2)
        for oldest in (14, 15, 16):
            with pytest.raises(errors.Gone):
                cache.subscribe(oldest - 1, "", do_nothing, selects=False)
            cache.subscribe(oldest, "", do_nothing)
            cache.apply([change("MODIFIED", "a/1", oldest + 10)], oldest + 10)

    def test_present_objects_are_not_kept_twice(self) -> None:
        cache = self.fill()
        _, watcher = cache.subscribe(15, "", do_nothing)
        assert watcher.pending[0].entry is cache.get("a/2")
