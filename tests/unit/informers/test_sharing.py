"""Tests that cached objects share equal parts, and that sharing does not change an object."""

from __future__ import annotations

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.informers.sharing import _LEAST, Sharing
from kcm.testing.builders import pod, replica_set


def copies(count: int = 2) -> list[bytes]:
    owner = replica_set("web")
    pods = [pod(f"web-{n}", labels={"app": "web"}, owner=owner) for n in range(count)]
    return [codec.encode(obj) for obj in pods]


def test_pods_of_one_owner_share_labels_and_owner_references() -> None:
    sharing = Sharing()
    first, second = (sharing.share(codec.decode(raw, BUILT_IN)) for raw in copies())
    assert first.metadata.labels is second.metadata.labels
    assert first.metadata.owner_references is second.metadata.owner_references


def test_pods_of_one_owner_share_what_their_template_says() -> None:
    sharing = Sharing()
    first, second = (sharing.share(codec.decode(raw, BUILT_IN)) for raw in copies())
    assert isinstance(first, Pod)
    assert isinstance(second, Pod)
    assert first.spec is not second.spec
    assert first.spec.containers is second.spec.containers


def test_pods_of_a_changed_template_share_the_new_one() -> None:
    sharing = Sharing()
    raw, other = copies()
    old = sharing.share(codec.decode(raw, BUILT_IN))
    newer = [text.replace(b'"image":"', b'"image":"next-') for text in (other, raw)]
    assert newer[0] != other
    first, second = (sharing.share(codec.decode(text, BUILT_IN)) for text in newer)
    assert isinstance(old, Pod)
    assert isinstance(first, Pod)
    assert isinstance(second, Pod)
    assert old.spec.containers is not first.spec.containers
    assert first.spec.containers is second.spec.containers
    assert codec.encode(first) == newer[0]


def test_an_object_stays_what_it_was() -> None:
    sharing = Sharing()
    for raw in copies():
        shared = sharing.share(codec.decode(raw, BUILT_IN))
        assert shared == codec.decode(raw, BUILT_IN)
        assert codec.encode(shared) == raw


def test_labels_that_differ_are_not_shared() -> None:
    sharing = Sharing()
    first = sharing.share(pod("a", labels={"app": "web"}))
    second = sharing.share(pod("b", labels={"app": "db"}))
    assert (first.labels, second.labels) == ({"app": "web"}, {"app": "db"})


def test_an_owner_reference_with_unknown_fields_keeps_them() -> None:
    sharing = Sharing()
    raw, _ = copies()
    strange = raw.replace(b'"controller":true', b'"controller":true,"future":[1]')
    assert strange != raw
    sharing.share(codec.decode(raw, BUILT_IN))
    kept = codec.decode(strange, BUILT_IN, keep_unknown=True)
    assert sharing.share(kept) == codec.decode(strange, BUILT_IN, keep_unknown=True)
    assert b'"future":[1]' in codec.encode(sharing.share(kept))


def test_objects_without_labels_and_owners_pass() -> None:
    obj = pod("bare", labels=None)
    assert Sharing().share(obj) is obj


def test_parts_are_forgotten_when_no_object_has_them() -> None:
    sharing = Sharing()
    for number in range(3 * _LEAST):
        labels, metadata = {"app": f"{number}"}, {"generate_name": f"{number}-"}
        sharing.share(pod("p", labels=labels, metadata=metadata))
    assert len(sharing._parts) + len(sharing._specs) <= _LEAST


def test_parts_that_objects_have_are_shared_however_many_others_come() -> None:
    sharing = Sharing()
    first, second = (sharing.share(codec.decode(raw, BUILT_IN)) for raw in copies())
    del first  # of whose template the second has the parts
    for number in range(3 * _LEAST):
        sharing.share(pod("other", labels={"app": f"{number}"}))
    third = sharing.share(codec.decode(copies()[0], BUILT_IN))
    assert isinstance(second, Pod)
    assert isinstance(third, Pod)
    assert third.metadata.labels is second.metadata.labels
    assert third.metadata.owner_references is second.metadata.owner_references
    assert third.spec.containers is second.spec.containers
