"""`kcm get -w` shows every change once, also after the watch has expired."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.scheme import Resource
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli.objects.follow import ShownChanges
from kcm.cli.objects.targets import CommandSelection, NamedObjects
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.watch import Retention, trim
from kcm.testing import builders
from tests.new_objects import make_namespaces

PODS = Pod.resource


class Seen:
    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, _: Resource, objects: Sequence[KubeObject]) -> None:
        self.names += [obj.name for obj in objects]

    def take(self) -> list[str]:
        taken, self.names = self.names, []
        return taken


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


@pytest.fixture
def seen() -> Seen:
    return Seen()


def new_pod(name: str, **labels: str) -> Pod:
    pod = builders.pod(name, labels=labels)
    return pod.with_metadata(resource_version=None)


def follower(store: Store, seen: Seen, selection: CommandSelection | None = None) -> ShownChanges:
    return ShownChanges(store, [NamedObjects(PODS)], selection or CommandSelection("default"), seen)


def test_what_is_there_comes_first_then_each_change_once(store: Store, seen: Seen) -> None:
    store.create(new_pod("a"))
    watching = follower(store, seen)
    watching.step(0.0)
    assert seen.take() == ["a"]
    store.create(new_pod("b"))
    store.delete(PODS, "default/a")
    watching.step(0.01)
    assert seen.take() == ["b", "a"]
    watching.step(0.01)
    assert seen.take() == []


def test_an_object_that_stops_matching_is_shown_a_last_time(store: Store, seen: Seen) -> None:
    store.create(new_pod("a", app="x"))
    watching = follower(store, seen, CommandSelection("default", labels=Selector.parse("app=x")))
    watching.step(0.0)
    seen.take()
    for value in ("y", "z"):
        store.patch(PODS, "default/a", {"metadata": {"labels": {"app": value}}})
    watching.step(0.01)
    assert seen.take() == ["a"]


def test_other_namespaces_are_not_shown(store: Store, seen: Seen) -> None:
    watching = follower(store, seen)
    watching.step(0.0)
    make_namespaces(store, "other")
    store.create(new_pod("a").with_metadata(namespace="other"))
    watching.step(0.01)
    assert seen.take() == []


def test_a_trimmed_watch_is_bridged_by_a_list_that_shows_only_differences(
    store: Store, seen: Seen, io: RedisIO
) -> None:
    store.create(new_pod("kept"))
    store.create(new_pod("deleted"))
    watching = follower(store, seen)
    watching.step(0.0)
    seen.take()
    store.delete(PODS, "default/deleted")
    store.create(new_pod("new"))
    store.create(new_pod("newer"))
    trim(io, [PODS], Retention(age=timedelta(0), entries=1))
    watching.step(0.01)
    assert seen.take() == ["deleted", "new", "newer"]
    store.create(new_pod("after"))
    watching.step(0.01)
    assert seen.take() == ["after"]
