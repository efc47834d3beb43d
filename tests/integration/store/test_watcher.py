from __future__ import annotations

import pytest

from kcm import errors
from kcm.api import scheme
from kcm.apimachinery.labels import Selector
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.trim import Retention, trim
from kcm.store.watcher import Watcher
from kcm.testing.clock import FakeClock
from tests.new_objects import make_namespaces, node, pod

PODS = scheme.lookup("pods")


def read_events(watcher: Watcher) -> list[tuple[str, str]]:
    return [(event.type, event.object.name) for event in watcher.step(0)]


def test_changes_come_from_the_version_on(store: Store) -> None:
    first = store.create(pod("a"))
    store.create(pod("b"))
    watcher = Watcher(store, PODS, int(first.metadata.resource_version or 0))
    assert read_events(watcher) == [("ADDED", "b")]
    store.delete(PODS, "default/a")
    assert read_events(watcher) == [("DELETED", "a")]
    assert read_events(watcher) == []


def test_matching_begins_as_added_and_ends_as_deleted(store: Store) -> None:
    store.create(pod("a", labels={"app": "x"}))
    watcher = Watcher(
        store, PODS, 1, label_selector=Selector.parse("app=y"), known=[], namespace="default"
    )
    for value in ("y", "y2", "y"):
        store.patch(PODS, "default/a", {"metadata": {"labels": {"app": value}}})
    assert read_events(watcher) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]
    store.patch(PODS, "default/a", {"metadata": {"labels": {"more": "z"}}})
    assert read_events(watcher) == [("MODIFIED", "a")]


def test_other_namespaces_are_not_told(store: Store) -> None:
    watcher = Watcher(store, PODS, 0, namespace="default")
    make_namespaces(store, "default-2")
    store.create(pod("a", namespace="default-2"))
    store.create(pod("b"))
    assert read_events(watcher) == [("ADDED", "b")]


def test_a_bookmark_tells_how_far_the_watch_has_come(store: Store, clock: FakeClock) -> None:
    watcher = Watcher(store, PODS, 0, clock=clock)
    store.create(pod("a"))
    store.create(node("n"))
    assert read_events(watcher) == [("ADDED", "a")]
    clock.step(61)
    (bookmark,) = watcher.step(0)
    assert (bookmark.type, bookmark.object.metadata.resource_version) == ("BOOKMARK", "2")
    assert read_events(watcher) == []


def test_a_watch_from_what_was_trimmed_is_gone(store: Store, io: RedisIO) -> None:
    store.create(pod("a"))
    store.create(pod("b"))
    trim(io, [PODS], Retention(entries=0))
    with pytest.raises(errors.Gone, match="too old resource version: 1"):
        Watcher(store, PODS, 1).step(0)
