"""Claiming, as a table: owner and objects in, claimed objects and writes out."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Pod
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.ownership import controller_of
from kcm.helpers.owners import adopt, claim, release, without_owners
from kcm.store.writes.guards import Exists
from kcm.testing.builders import START, owner_reference, pod, replica_set

RS = replica_set()
OTHER = replica_set("other")
DYING = RS.with_metadata(deletion_timestamp=START)
SELECTOR = Selector.parse("app=web")


@pytest.mark.parametrize(
    ("owner", "obj", "claimed", "written"),
    [
        pytest.param(RS, pod(owner=RS), True, None, id="own and matching"),
        pytest.param(DYING, pod(owner=RS), True, None, id="own, while being deleted"),
        pytest.param(RS, pod(owner=RS, deleting=START), True, None, id="own, on its way out"),
        pytest.param(RS, pod(owner=RS, labels={}), False, "release", id="own, no longer matching"),
        pytest.param(DYING, pod(owner=RS, labels={}), False, None, id="a dying owner lets be"),
        pytest.param(RS, pod(owner=OTHER, labels={"app": "web"}), False, None, id="another's"),
        pytest.param(RS, pod(labels={"app": "web"}), True, "adopt", id="a matching orphan"),
        pytest.param(RS, pod(labels={"app": "x"}), False, None, id="an orphan of no concern"),
        pytest.param(DYING, pod(labels={"app": "web"}), False, None, id="a dying owner adopts not"),
        pytest.param(
            RS, pod(labels={"app": "web"}, deleting=START), False, None, id="a dying orphan"
        ),
        pytest.param(
            RS,
            pod(owner=RS.with_metadata(uid="earlier"), labels={"app": "web"}),
            False,
            None,
            id="one of an earlier incarnation",
        ),
    ],
)
def test_claim(owner: KubeObject, obj: Pod, claimed: bool, written: str | None) -> None:
    new_claim = claim(owner, SELECTOR, [obj])
    assert new_claim.objects == ([obj] if claimed else [])
    if written is None:
        assert new_claim.writes == []
        return
    (write,) = new_claim.writes
    reference = controller_of(write.change(obj))
    assert (reference.uid if reference else None) == (RS.uid if written == "adopt" else None)


def test_objects_that_share_labels_or_owners_are_judged_by_both() -> None:
    fits, fits_not = {"app": "web"}, {"app": "x"}
    mine, others = [owner_reference(RS, controller=True)], [owner_reference(OTHER, controller=True)]
    shared = [
        (None, None),
        (fits, mine),
        (fits, others),
        (fits, mine),
        (fits_not, mine),
        (fits_not, None),
        (fits, None),
        (None, mine),
        (fits, mine),
    ]
    pods = [
        pod(f"web-{n}", metadata={"labels": labels, "owner_references": references})
        for n, (labels, references) in enumerate(shared)
    ]
    new_claim = claim(RS, SELECTOR, pods)
    assert [obj.name for obj in new_claim.objects] == ["web-1", "web-3", "web-6", "web-8"]
    assert [write.old.name for write in new_claim.writes] == ["web-4", "web-6", "web-7"]


def test_adoption_is_refused_when_the_owner_was_deleted_or_replaced() -> None:
    (guard,) = adopt(RS, pod()).guards
    assert guard == Exists("replicasets.apps", "default/web", RS.uid)


def test_adoption_keeps_other_owners_and_replaces_a_plain_reference() -> None:
    references = [owner_reference(OTHER), owner_reference(RS)]
    obj = pod(metadata={"owner_references": references})
    adopted = adopt(RS, obj).change(obj).metadata.owner_references or []
    assert [(ref.name, ref.controller) for ref in adopted] == [("other", None), ("web", True)]


def test_release_keeps_other_owners() -> None:
    obj = pod(metadata={"owner_references": [owner_reference(RS), owner_reference(OTHER)]})
    released = release(RS, obj).change(obj).metadata.owner_references or []
    assert [ref.name for ref in released] == ["other"]


def test_the_cached_object_stays_as_it_is() -> None:
    obj = pod(labels={"app": "web"})
    before = obj.model_copy(deep=True)
    adopt(RS, obj).change(obj)
    assert obj == before


def test_there_is_nothing_to_change_when_the_references_are_gone_already() -> None:
    obj = pod(owner=OTHER)
    assert without_owners(RS.uid)(obj) is obj
    assert without_owners(OTHER.uid)(obj).metadata.owner_references is None
