"""Tests owner references that conflict with the existing objects: which dependents are deleted or
kept, and which Events there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.controllers.garbagecollector import GarbageCollector
from kcm.controllers.garbagecollector.controller import item_keys
from kcm.controllers.garbagecollector.graph import Item
from kcm.reconcile.contract import Change
from kcm.testing.builders import config_map, deployment, node, owner_reference, pod
from kcm.testing.views import FakeView
from kcm.testing.world import World
from tests.unit.controllers.autoscaling import autoscaler

DEPLOYMENT = deployment("deployment1", namespace="ns1")
FAR = pod("podname2", namespace="ns2")
NODE = node("nodename")
PARENT = pod("podname1", namespace="ns1")
SCALER = autoscaler()

UNSERVED = owner_reference(DEPLOYMENT, api_version="extensions/v1beta1")
OTHER_FACE = owner_reference(SCALER, api_version="autoscaling/v1")
NO_SUCH_SECRET = owner_reference(DEPLOYMENT, api_version="v1", kind="Secret", name="secretname")


def child(name: str, *references: OwnerReference, namespace: str = "ns1") -> Pod:
    return pod(name, namespace=namespace, metadata={"owner_references": list(references)})


def build_warning(namespace: str, owner: KubeObject) -> str:
    named = f"[v1/Pod, namespace: {namespace}, name: {owner.name}, uid: {owner.uid}]"
    return f'OwnerRefInvalidNamespace ownerRef {named} does not exist in namespace "{namespace}"'


@dataclass(frozen=True)
class Case:
    """Objects in the order in which informers see them, with the expected deletions and Events."""

    seen: list[KubeObject]
    deleted: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


BAD = child("bad", NO_SUCH_SECRET)
GOOD = child("good", owner_reference(DEPLOYMENT))
OF_FAR = child("child", owner_reference(FAR))
ASTRAY = node("astray", metadata={"owner_references": [owner_reference(PARENT)]})
OF_PARENT = child("child", owner_reference(PARENT))

CASES = {
    "good child in ns1 -> cluster-scoped owner": Case([child("a", owner_reference(NODE)), NODE]),
    "bad child in ns1 -> owner in ns2 (child first)": Case(
        [OF_FAR, FAR], ["child"], [build_warning("ns1", FAR)]
    ),
    "bad child in ns1 -> owner in ns2 (owner first)": Case(
        [FAR, OF_FAR], ["child"], [build_warning("ns1", FAR)]
    ),
    "bad cluster-scoped child -> owner in ns1 (child first)": Case(
        [ASTRAY, PARENT], [], [build_warning("", PARENT)]
    ),
    "bad cluster-scoped child -> owner in ns1 (owner first)": Case(
        [PARENT, ASTRAY], [], [build_warning("", PARENT)]
    ),
    "good child -> existing owner with non-preferred accessible API version": Case(
        [child("a", OTHER_FACE, namespace=SCALER.namespace), SCALER]
    ),
    "child -> existing owner with inaccessible API version (child first)": Case(
        [child("a", UNSERVED), DEPLOYMENT]
    ),
    "child -> existing owner with inaccessible API version (owner first)": Case(
        [DEPLOYMENT, child("a", UNSERVED)]
    ),
    "child -> non-existent owner with inaccessible API version (inaccessible first)": Case(
        [child("a", UNSERVED), child("b", owner_reference(DEPLOYMENT))], ["b"]
    ),
    "child -> non-existent owner with inaccessible API version (accessible first)": Case(
        [child("b", owner_reference(DEPLOYMENT)), child("a", UNSERVED)], ["b"]
    ),
    "bad child -> existing owner with incorrect API version (bad, good, parent)": Case(
        [BAD, GOOD, DEPLOYMENT], ["bad"]
    ),
    "bad child -> existing owner with incorrect API version (good, bad, parent)": Case(
        [GOOD, BAD, DEPLOYMENT], ["bad"]
    ),
    "cluster-scoped bad child, namespaced good child, missing parent": Case(
        [ASTRAY, OF_PARENT], ["child"]
    ),
    "cluster-scoped bad child, namespaced good child, late observed parent": Case(
        [ASTRAY, OF_PARENT, PARENT], [], [build_warning("", PARENT)]
    ),
    "namespaced good child, cluster-scoped bad child, missing parent": Case(
        [OF_PARENT, ASTRAY], ["child"]
    ),
    # Not upstream's: both mistakes in one graph, the bad one from outside.
    "inaccessible API version beside another namespace's non-existent owner": Case(
        [
            DEPLOYMENT,
            child("a", UNSERVED),
            config_map("bad", namespace="ns2", metadata={"owner_references": [NO_SUCH_SECRET]}),
        ],
        ["bad"],
        [
            "OwnerRefInvalidNamespace ownerRef "
            f"[v1/Secret, namespace: ns2, name: secretname, uid: {DEPLOYMENT.uid}] "
            'does not exist in namespace "ns2"'
        ],
    ),
    "inaccessible API version of an owner in another namespace": Case(
        [child("a", owner_reference(FAR, api_version="v0")), FAR],
        [],
        [build_warning("ns1", FAR).replace("v1/Pod", "v0/Pod")],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_conflicting_owners(case: Case) -> None:
    """Upstream's TestConflictingData. Keys are computed from the objects seen so far; syncs see
    all.
    """
    world, controller = World(*case.seen), GarbageCollector()
    seen: list[KubeObject] = []
    keys: dict[str, None] = {}
    for obj in case.seen:
        seen.append(obj)
        keys |= dict.fromkeys(item_keys(Change(None, obj), FakeView(*seen)))
    events: dict[str, None] = {}
    for key in keys:
        plan = controller.reconcile(key, world.view())
        world.carry_out(plan)
        events |= dict.fromkeys(f"{event.reason} {event.message}" for event in plan.events)
    left = {obj.name for obj in world.objects.values()}
    assert sorted({obj.name for obj in case.seen} - left) == case.deleted
    assert list(events) == case.events
    assert not world.failures


def test_a_sync_for_a_living_owners_uid_under_another_name_spares_its_dependents() -> None:
    """Once an owner of a version that is not served counted as absent by its uid alone."""
    item = Item("secrets", "ns2/secretname", DEPLOYMENT.uid)
    view = FakeView(DEPLOYMENT, child("a", UNSERVED))
    assert GarbageCollector().reconcile(str(item), view).writes == []


@pytest.mark.parametrize(
    ("item", "collected"),
    [
        pytest.param("odds.example.com|ns1/owner|u", True, id="this very owner"),
        pytest.param("odds.example.com|owner|u", True, id="an owner of the cluster"),
        pytest.param("odds.example.com|ns1/owner|v", False, id="another incarnation"),
        pytest.param("odds.example.com|ns1/other|u", False, id="another name"),
        pytest.param("odds.example.com|ns2/owner|u", False, id="another namespace"),
        pytest.param("odds.example.org|ns1/owner|u", False, id="another group"),
        pytest.param("secrets|ns1/owner|u", False, id="a kind that is served"),
    ],
)
def test_dependents_of_a_kind_that_is_gone_go_with_the_owner_they_name(
    item: str, collected: bool
) -> None:
    odd = OwnerReference(api_version="example.com/v1", kind="Odd", name="owner", uid="u")
    plan = GarbageCollector().reconcile(item, FakeView(child("a", odd)))
    assert bool(plan.writes) is collected


def test_an_owner_that_waits_is_woken_by_the_end_of_a_dependent_in_another_namespace() -> None:
    waiting = PARENT.with_metadata(
        deletion_timestamp=PARENT.metadata.creation_timestamp, finalizers=["foregroundDeletion"]
    )
    stray = child("a", owner_reference(PARENT, block_owner_deletion=True), namespace="ns2")
    assert list(item_keys(Change(stray, None), FakeView(waiting))) == [str(Item.of(waiting))]


@pytest.mark.parametrize(
    ("namespace", "waits"), [("ns1", True), ("ns2", False)], ids=["its own", "another"]
)
def test_only_dependents_of_its_own_namespace_keep_an_owner_waiting(
    namespace: str, waits: bool
) -> None:
    waiting = PARENT.with_metadata(
        deletion_timestamp=PARENT.metadata.creation_timestamp, finalizers=["foregroundDeletion"]
    )
    unknown = owner_reference(PARENT, api_version="v0", block_owner_deletion=True)
    held = child("a", unknown, namespace=namespace)
    world = World(waiting, held)
    world.carry_out(GarbageCollector().reconcile(str(Item.of(waiting)), world.view()))
    assert (world.find(waiting) is not None) is waits
    assert world.find(held) == held
