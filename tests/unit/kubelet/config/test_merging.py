"""Merging the updates of sources into changes of pods."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Pod, PodStatus
from kcm.kubelet.config.merging import PodStorage, compute_operation
from kcm.kubelet.types import API, FILE, FIRST_SEEN_ANNOTATION, Operation, PodUpdate, source_of
from tests.unit.kubelet.views import NOW, pod


def build_pod(name: str, **more: Any) -> Pod:
    return pod(metadata={"name": name, "uid": f"{name}-uid"}, **more)


class Source:
    """Sends updates of one source to a storage."""

    def __init__(self, storage: PodStorage, name: str = API) -> None:
        self._storage = storage
        self._name = name

    def __call__(self, op: Operation, *pods: Pod) -> list[tuple[str, list[str]]]:
        updates = self._storage.merge(PodUpdate(op, self._name, pods), NOW)
        return [(one.op.value, [p.name or "" for p in one.pods]) for one in updates]


def test_a_set_is_told_as_what_changed() -> None:
    says = Source(PodStorage())
    assert says(Operation.SET, build_pod("a"), build_pod("b")) == [("ADD", ["a", "b"])]
    assert says(Operation.SET, build_pod("a"), build_pod("b")) == []
    changed = build_pod("b", priority=5)
    assert says(Operation.SET, changed, build_pod("c")) == [
        ("REMOVE", ["a"]),
        ("ADD", ["c"]),
        ("UPDATE", ["b"]),
    ]


def test_the_first_set_is_told_even_when_it_is_empty() -> None:
    says = Source(PodStorage())
    assert says(Operation.SET) == [("ADD", [])]
    assert says(Operation.SET) == []


def test_sources_do_not_see_each_others_pods() -> None:
    storage = PodStorage()
    api, file = Source(storage), Source(storage, FILE)
    api(Operation.SET, build_pod("a"))
    file(Operation.SET, build_pod("b"))
    assert api(Operation.SET, build_pod("a")) == []
    assert {stored.name: source_of(stored) for stored in storage.pods()} == {"a": API, "b": FILE}


def test_single_operations_are_merged_too() -> None:
    says = Source(PodStorage())
    assert says(Operation.ADD, build_pod("a")) == [("ADD", ["a"])]
    assert says(Operation.UPDATE, build_pod("a", phase="Running")) == [("RECONCILE", ["a"])]
    assert says(Operation.REMOVE, build_pod("a"), build_pod("never")) == [("REMOVE", ["a"])]
    assert says(Operation.RESTORE, build_pod("z")) == [("RESTORE", ["z"])]


def test_of_pods_with_one_name_the_first_counts() -> None:
    says = Source(PodStorage())
    twin = pod(metadata={"name": "a", "uid": "twin"})
    assert says(Operation.SET, build_pod("a"), twin) == [("ADD", ["a"])]


def test_when_a_pod_was_first_seen_is_kept() -> None:
    storage = PodStorage()
    says = Source(storage)
    says(Operation.SET, build_pod("a"))
    first = storage.pods()[0].annotations[FIRST_SEEN_ANNOTATION]
    says(Operation.SET, build_pod("a", priority=1))
    assert storage.pods()[0].annotations[FIRST_SEEN_ANNOTATION] == first


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (build_pod("a"), None),
        (build_pod("a", priority=1), Operation.UPDATE),
        (build_pod("a").with_metadata(labels={"x": "y"}), Operation.UPDATE),
        (build_pod("a").with_metadata(annotations={"x": "y"}), Operation.UPDATE),
        (build_pod("a").with_metadata(annotations={FIRST_SEEN_ANNOTATION: "y"}), None),
        (build_pod("a").with_metadata(resource_version="99"), None),
        (build_pod("a").with_metadata(deletion_timestamp=NOW), Operation.DELETE),
        (build_pod("a").with_status(PodStatus(phase="Running")), Operation.RECONCILE),
    ],
)
def test_what_happened_to_a_pod(new: Pod, expected: Operation | None) -> None:
    assert compute_operation(build_pod("a"), new) is expected
