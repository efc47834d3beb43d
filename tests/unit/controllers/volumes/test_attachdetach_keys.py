"""Which volumes a change touches, for the attach-detach controller."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Node, Pod
from kcm.controllers.volumes.attachdetach import keys
from kcm.reconcile.contract import Change
from kcm.testing.builders import pod
from kcm.testing.storage_builders import csi_driver, csi_volume
from kcm.testing.views import FakeView
from tests.unit.controllers.attachdetach_world import DATA, DISK, TAINT, attachment, node, user

STORAGE = (DATA, DISK)


@pytest.mark.parametrize(
    ("old", "new", "touched"),
    [
        (None, user(), ["disk"]),
        (None, user(on=""), []),
        (user(on=""), user(), ["disk"]),
        (user(), user(status={"pod_ip": "10.0.0.1"}), []),
        (user(), user(phase="Failed"), ["disk"]),
        (user(), None, ["disk"]),
        (None, pod(node="n1"), []),
        (None, user(of="other"), ["default/other"]),  # its volume is not known yet
    ],
)
def test_pods_touch_their_volumes(old: Pod | None, new: Pod | None, touched: list[str]) -> None:
    assert list(keys.of_pod(Change(old, new), FakeView(*STORAGE))) == touched


@pytest.mark.parametrize(
    ("old", "new", "touched"),
    [
        (None, node(), True),
        (node(), node(labels={"a": "b"}), False),
        (node(), node(in_use=True), False),
        (node(in_use=True), node(), True),
        (node(), node(attached=True), False),
        (node(attached=True), node(), True),
        (node(), node(ready=False), True),
        (node(), node(taints=[TAINT]), True),
        (node(annotations={}), node(), True),
        (node(), None, True),
    ],
)
def test_nodes_touch_their_volumes_when_something_may_be_done(
    old: Node | None, new: Node | None, touched: bool
) -> None:
    view = FakeView(*STORAGE, user(), attachment())
    assert set(keys.of_node(Change(old, new), view)) == ({"disk"} if touched else set())


def test_objects_of_storage_touch_their_volume() -> None:
    view = FakeView(*STORAGE, attachment())
    assert list(keys.of_claim(Change(None, DATA), view)) == ["disk"]
    assert set(keys.of_volume(Change(None, DISK), view)) == {"disk"}
    assert list(keys.of_attachment(Change(attachment(), None), view)) == ["disk"]
    waiting = attachment(attached=False)
    assert list(keys.of_attachment(Change(waiting, attachment()), view)) == ["disk"]
    assert list(keys.of_driver(Change(None, csi_driver(attach_required=False)), view)) == ["disk"]
    assert list(keys.of_driver(Change(csi_driver(), csi_driver()), view)) == []


def test_volumes_that_are_not_attached_are_touched_by_nothing() -> None:
    view = FakeView(*STORAGE, csi_driver(attach_required=False))
    assert list(keys.of_pod(Change(None, user()), view)) == []
    assert list(keys.of_claim(Change(None, DATA), view)) == []
    assert list(keys.of_volume(Change(None, DISK), view)) == []


def test_volumes_of_one_handle_have_one_key() -> None:
    sibling = csi_volume("a-disk", handle="disk")
    view = FakeView(*STORAGE, sibling)
    assert list(keys.of_claim(Change(None, DATA), view)) == ["a-disk"]
    assert "a-disk" in list(keys.of_volume(Change(None, DISK), view))


def test_changes_that_do_not_matter_touch_nothing() -> None:
    view = FakeView(*STORAGE, attachment())
    marked = {"finalizers": ["example.com/x"]}
    assert list(keys.of_claim(Change(DATA, DATA.with_metadata(**marked)), view)) == []
    assert list(keys.of_volume(Change(DISK, DISK.with_metadata(**marked)), view)) == []
    assert list(keys.of_attachment(Change(attachment(), attachment()), view)) == []
