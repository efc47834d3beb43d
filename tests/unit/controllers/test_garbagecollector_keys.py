"""Tests which owners' keys the garbage collector enqueues for a change."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.controllers.garbagecollector.controller import item_keys
from kcm.controllers.garbagecollector.graph import Item
from kcm.reconcile.contract import Change
from kcm.testing.builders import START, node, owner_reference, pod
from kcm.testing.views import FakeView

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
OWNER, GONE = pod("owner"), pod("gone")
WAITING = pod("waiting", deleting=START, metadata={"finalizers": [FOREGROUND]})


def build_owned_pod(name: str, *references: OwnerReference) -> Pod:
    return pod(name, metadata={"owner_references": list(references)})


def newer(obj: Pod, **metadata: object) -> Pod:
    return obj.with_metadata(resource_version="2", **metadata)


def keys(old: KubeObject | None, new: KubeObject | None, *present: KubeObject) -> list[str]:
    """Returns the names of the enqueued owners. The caches hold `present` and the new object."""
    view = FakeView(*present, *([new] if new is not None else []))
    keys_of_change = list(dict.fromkeys(item_keys(Change(old, new), view)))
    return [Item.parse(key).key.rpartition("/")[2] for key in keys_of_change]


SOLID = build_owned_pod("a", owner_reference(OWNER))
DANGLING = build_owned_pod("a", owner_reference(GONE))
HELD = build_owned_pod("a", owner_reference(WAITING, block_owner_deletion=True))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, OWNER, [], id="an object without owners"),
        pytest.param(None, SOLID, [], id="a dependent whose owner is there"),
        pytest.param(None, DANGLING, ["gone"], id="a dependent whose owner is not"),
        pytest.param(None, HELD, ["waiting"], id="a dependent that comes too late"),
        pytest.param(None, WAITING, ["waiting"], id="an owner that waits already"),
        pytest.param(SOLID, newer(SOLID, labels={"x": "y"}), [], id="a change of no concern"),
        pytest.param(DANGLING, newer(DANGLING, labels={"x": "y"}), [], id="known to dangle"),
        pytest.param(DANGLING, DANGLING, ["gone"], id="a resync looks again"),
        pytest.param(
            SOLID,
            newer(SOLID, owner_references=DANGLING.metadata.owner_references),
            ["gone"],
            id="another owner, absent",
        ),
        pytest.param(OWNER, newer(OWNER, deletion_timestamp=START), [], id="merely being deleted"),
        pytest.param(
            OWNER,
            newer(OWNER, deletion_timestamp=START, finalizers=[FOREGROUND]),
            ["owner"],
            id="deleted in the foreground",
        ),
        pytest.param(
            OWNER,
            newer(OWNER, deletion_timestamp=START, finalizers=[ORPHAN]),
            ["owner"],
            id="deleted, leaving orphans",
        ),
        pytest.param(OWNER, newer(OWNER, finalizers=[ORPHAN]), [], id="not deleted yet"),
        pytest.param(
            HELD, newer(HELD, owner_references=None), ["waiting"], id="unblocks its owner"
        ),
        pytest.param(
            HELD,
            newer(HELD, owner_references=[owner_reference(WAITING)]),
            ["waiting"],
            id="stays, but blocks no more",
        ),
        pytest.param(
            SOLID, newer(SOLID, owner_references=None), [], id="leaves an owner that stays"
        ),
        pytest.param(HELD, None, ["waiting"], id="gone, its owner waits"),
        pytest.param(SOLID, None, [], id="gone, its owner does not wait"),
        pytest.param(DANGLING, None, [], id="gone like its owner"),
    ],
)
def test_a_change_concerns(old: Pod | None, new: Pod | None, expected: list[str]) -> None:
    assert keys(old, new, OWNER, WAITING) == expected


def test_a_deleted_owner_concerns_its_dependents() -> None:
    assert keys(GONE, None, DANGLING) == ["gone"]


def test_the_deletion_of_what_owns_nothing_is_of_no_concern() -> None:
    assert keys(GONE, None, SOLID, OWNER) == []


def test_a_replaced_owner_counts_as_deleted() -> None:
    again = newer(GONE, uid="another")
    assert keys(GONE, again, DANGLING) == ["gone"]
    item_keys_of_change = list(item_keys(Change(GONE, again), FakeView(again, DANGLING)))
    assert item_keys_of_change == [f"pods|default/gone|{GONE.uid}"]


def test_an_owner_of_an_unknown_kind_is_of_no_concern() -> None:
    odd = OwnerReference(api_version="example.com/v1", kind="Odd", name="o", uid="o")
    assert keys(None, build_owned_pod("a", odd)) == []


def test_a_clusters_object_with_an_owner_in_a_namespace_concerns_itself() -> None:
    n1 = node("n1", metadata={"owner_references": [owner_reference(OWNER)]})
    assert keys(None, n1, OWNER) == ["n1"]


def test_many_dependents_of_one_owner_are_one_key() -> None:
    keys = {
        key
        for name in "abc"
        for key in item_keys(Change(None, build_owned_pod(name, owner_reference(GONE))), FakeView())
    }
    assert keys == {f"pods|default/gone|{GONE.uid}"}
