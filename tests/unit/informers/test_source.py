"""A source that asks only for what there can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kcm.api.scheme import Resource, Scheme
from kcm.informers.source import LevelSource
from tests.unit.informers.fakes import NODES, PODS, FakeSource


class CountingFake(FakeSource):
    """A store in memory that notes the looks for kinds without objects."""

    scheme = Scheme()

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def resource_version(self) -> int:
        return self.rv

    def count_objects(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        self.looks += 1
        return {resource: len(self.objects.get(resource, ())) for resource in resources}


@pytest.fixture
def store() -> CountingFake:
    return CountingFake()


@pytest.fixture
def source(store: CountingFake) -> LevelSource:
    return LevelSource(store)


def test_one_look_finds_all_kinds_without_objects(store: CountingFake, source: LevelSource) -> None:
    version = store.put("node-1", NODES)
    listed = source.list_all(PODS)
    assert (list(listed.objects), listed.resource_version) == ([], version)
    assert [node.name for node in source.list_all(NODES).objects] == ["node-1"]
    assert (store.looks, store.lists) == (1, [NODES])


def test_what_is_written_after_the_look_is_a_change(
    store: CountingFake, source: LevelSource
) -> None:
    store.put("node-1", NODES)
    source.list_all(NODES)
    store.put("default/a")
    listed = source.list_all(PODS)
    assert not list(listed.objects)
    changes = source.read_changes({PODS: listed.resource_version}, 0)
    assert [entry.key for entry in changes.entries] == ["default/a"]


def test_a_second_list_of_a_kind_and_one_after_a_read_look_again(
    store: CountingFake, source: LevelSource
) -> None:
    source.list_all(PODS)
    store.put("default/a")
    assert [pod.key for pod in source.list_all(PODS).objects] == ["default/a"]
    assert not list(source.list_all(NODES).objects)
    source.read_changes({NODES: store.rv}, 0)
    store.put("node-1", NODES)
    assert [node.name for node in source.list_all(NODES).objects] == ["node-1"]


def test_changes_are_read_only_if_anything_was_written(
    store: CountingFake, source: LevelSource
) -> None:
    store.put("default/a")
    read = source.read_changes({PODS: 0}, 0)
    assert [entry.key for entry in read.entries] == ["default/a"]
    assert not source.read_changes(read.positions, 0).entries
    count = len(store.reads)
    assert source.read_changes(read.positions, 0).positions == read.positions
    assert len(store.reads) == count
    store.put("default/b")
    assert [e.key for e in source.read_changes(read.positions, 0).entries] == ["default/b"]


def test_a_kind_that_was_listed_is_read_again(store: CountingFake, source: LevelSource) -> None:
    store.put("default/a")
    positions = source.read_changes({PODS: 0}, 0).positions
    source.read_changes(positions, 0)
    count = len(store.reads)
    source.list_all(PODS)
    source.read_changes(positions, 0)
    assert len(store.reads) == count + 1
