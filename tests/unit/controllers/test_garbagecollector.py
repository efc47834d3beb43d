"""Tests which writes the garbage collector plans for a graph of owners."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import pytest

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.controllers.garbagecollector import GarbageCollector, GarbageCollectorOptions
from kcm.controllers.garbagecollector.controller import BURST
from kcm.controllers.garbagecollector.graph import Item
from kcm.informers.views import metadata_view
from kcm.reconcile.plan import AnyPlan, Delete, Patch, Plan
from kcm.testing.builders import START, node, owner_reference, pod, replica_set
from kcm.testing.views import FakeView

T = TypeVar("T", bound=KubeObject)
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


def reconcile(item: KubeObject, *objects: KubeObject) -> Plan:
    """Returns the plan for an owner; the owner exists only if it is among the objects too."""
    controller = GarbageCollector()
    return controller.reconcile(str(Item.of(item)), FakeView(*objects, controller=controller))


def build_owned_pod(name: str, *owners: KubeObject | OwnerReference, **fields: Any) -> Pod:
    """Returns a pod that has these owners."""
    references = [o if isinstance(o, OwnerReference) else owner_reference(o) for o in owners]
    return pod(name, metadata={"owner_references": references}, **fields)


def mark_deleting(obj: T, *finalizers: str) -> T:
    """Returns the object with a deletion timestamp and these finalizers."""
    return obj.with_metadata(deletion_timestamp=START, finalizers=list(finalizers) or None)


def build_blocking_reference(owner: KubeObject) -> OwnerReference:
    return owner_reference(owner, block_owner_deletion=True)


def summary(plan: AnyPlan) -> list[str]:
    """Returns a short text for each write of a plan."""
    lines = []
    for write in plan.writes:
        if isinstance(write, Delete):
            assert write.options.uid == write.old.uid
            lines.append(f"delete {write.old.name} {write.options.propagation_policy}")
        elif isinstance(write, Patch):
            meta = write.change(write.old).metadata
            owners = ",".join(ref.name for ref in meta.owner_references or ())
            lines.append(f"patch {write.old.name} owners={owners} finalizers={meta.finalizers}")
    return lines


def guards(plan: Plan) -> list[list[str]]:
    return [[str(guard) for guard in write.guards] for write in plan.writes]


GONE = pod("gone")
OWNER = pod("owner")
WAITING = mark_deleting(pod("waiting"), FOREGROUND)


# --- owners that are gone


def test_dependents_of_an_absent_owner_are_deleted_in_the_background() -> None:
    plan = reconcile(
        GONE,
        build_owned_pod("a", GONE),
        build_owned_pod("b", GONE),
        build_owned_pod("c", OWNER),
        OWNER,
    )
    assert summary(plan) == ["delete a Background", "delete b Background"]


def test_the_deletion_depends_on_the_owner_staying_absent() -> None:
    plan = reconcile(GONE, build_owned_pod("a", GONE))
    assert guards(plan) == [[f"absent pods default/gone {GONE.uid}"]]
    (write,) = plan.writes
    assert isinstance(write, Delete)
    assert write.options.resource_version == "1"


def test_an_owner_that_was_replaced_is_absent() -> None:
    again = pod("gone", metadata={"uid": "another"})
    assert summary(
        reconcile(GONE, again, build_owned_pod("a", GONE), build_owned_pod("b", again))
    ) == ["delete a Background"]


def test_with_another_owner_left_only_the_reference_goes() -> None:
    plan = reconcile(GONE, OWNER, build_owned_pod("a", GONE, OWNER))
    assert summary(plan) == ["patch a owners=owner finalizers=None"]
    assert guards(plan) == [[f"absent pods default/gone {GONE.uid}"]]


def test_with_several_owners_gone_the_deletion_depends_on_each() -> None:
    gone2 = node("gone2")
    plan = reconcile(GONE, build_owned_pod("a", GONE, gone2))
    assert guards(plan) == [
        [f"absent pods default/gone {GONE.uid}", f"absent nodes gone2 {gone2.uid}"]
    ]


@pytest.mark.parametrize(
    ("finalizer", "policy"),
    [(ORPHAN, "Orphan"), (FOREGROUND, "Foreground"), ("x.io/y", "Background")],
)
def test_finalizers_that_are_there_decide_the_policy(finalizer: str, policy: str) -> None:
    dependent = build_owned_pod("a", GONE).with_metadata(finalizers=[finalizer])
    assert summary(reconcile(GONE, dependent)) == [f"delete a {policy}"]


def test_what_is_being_deleted_already_is_left_alone() -> None:
    assert summary(reconcile(GONE, mark_deleting(build_owned_pod("a", GONE)))) == []


def test_an_owner_that_exists_is_left_alone_and_so_are_its_dependents() -> None:
    assert summary(reconcile(OWNER, OWNER, build_owned_pod("a", OWNER))) == []


def test_an_owner_that_is_merely_being_deleted_still_keeps_its_dependents() -> None:
    dying = mark_deleting(OWNER, "x.io/y")
    assert summary(reconcile(dying, dying, build_owned_pod("a", dying))) == []


def test_many_dependents_take_several_syncs() -> None:
    plan = reconcile(GONE, *(build_owned_pod(f"p{n}", GONE) for n in range(BURST + 1)))
    assert len(plan.writes) == BURST
    assert plan.requeue_after == 0.0


def test_metadata_is_enough_to_decide() -> None:
    dependent = metadata_view(Pod.resource).convert(build_owned_pod("a", GONE))
    assert summary(reconcile(GONE, dependent)) == ["delete a Background"]


# --- owners that no one can look up


def test_nothing_happens_while_an_owners_kind_is_unknown() -> None:
    odd = OwnerReference(api_version="example.com/v1", kind="Odd", name="odd", uid="o")
    assert summary(reconcile(GONE, build_owned_pod("a", GONE, odd))) == []


def test_events_own_nothing() -> None:
    event = OwnerReference(api_version="v1", kind="Event", name="e", uid="e")
    assert summary(reconcile(GONE, build_owned_pod("a", GONE, event))) == []


def test_an_item_of_a_kind_that_is_no_more_is_nothing_to_do() -> None:
    assert GarbageCollector().reconcile("odds.example.com|default/a|u", FakeView()).writes == []


def test_a_clusters_object_with_an_owner_in_a_namespace_is_never_collected() -> None:
    """Upstream does so since its pull request 92743."""
    references = [owner_reference(GONE), owner_reference(node("gone-node"))]
    plan = reconcile(GONE, node("n1", metadata={"owner_references": references}))
    assert (summary(plan), plan.events) == ([], [])


def test_an_object_in_a_namespace_may_belong_to_one_of_the_cluster() -> None:
    n1 = node("n1")
    assert summary(reconcile(n1, n1, build_owned_pod("a", n1))) == []
    assert summary(reconcile(n1, build_owned_pod("a", n1))) == ["delete a Background"]


# --- owners in other namespaces


@pytest.mark.parametrize("bad_first", [True, False])
def test_issue_88097_a_bad_reference_to_a_live_owner_costs_no_good_child_its_life(
    bad_first: bool,
) -> None:
    """Upstream once kept a cache of absent owners by uid alone."""
    good = build_owned_pod("good", OWNER)
    elsewhere = build_owned_pod("elsewhere", OWNER, namespace="far")
    wrong_kind = OwnerReference(api_version="v1", kind="Node", name="owner", uid=OWNER.uid)
    mistaken = build_owned_pod("mistaken", wrong_kind)
    objects = (OWNER, good, elsewhere, mistaken)
    items = [
        Item("pods", "far/owner", OWNER.uid),
        Item("nodes", "owner", OWNER.uid),
        Item.of(OWNER),
    ]
    controller = GarbageCollector()
    for item in items if bad_first else reversed(items):
        doomed = summary(controller.reconcile(str(item), FakeView(*objects)))
        assert not [line for line in doomed if "good" in line]
    assert summary(controller.sweep(FakeView(OWNER, good), {})) == []


def test_issue_92743_an_owner_in_another_namespace_is_absent_and_a_warning_says_so() -> None:
    far = pod("owner", namespace="far")
    stray = build_owned_pod("a", far)
    local = replace(Item.of(OWNER), key="default/owner", uid=far.uid)
    controller = GarbageCollector()
    plan = controller.reconcile(
        str(local), FakeView(far, stray, build_owned_pod("b", far, namespace="far"))
    )
    assert summary(plan) == ["delete a Background"]
    (event,) = plan.events
    assert (event.about, event.type, event.reason) == (stray, "Warning", "OwnerRefInvalidNamespace")
    assert event.message == (
        f"ownerRef [v1/Pod, namespace: default, name: owner, uid: {far.uid}] "
        'does not exist in namespace "default"'
    )


def test_a_clusters_object_is_warned_too() -> None:
    n1 = node("n1", metadata={"owner_references": [owner_reference(OWNER)]})
    plan = reconcile(n1, n1, OWNER)
    assert summary(plan) == []
    assert [event.reason for event in plan.events] == ["OwnerRefInvalidNamespace"]


def test_an_owner_that_is_nowhere_is_no_reason_to_warn() -> None:
    assert reconcile(GONE, build_owned_pod("a", GONE)).events == []


# --- foreground


def test_an_owner_waits_while_dependents_block_it() -> None:
    plan = reconcile(
        WAITING,
        WAITING,
        build_owned_pod("a", build_blocking_reference(WAITING)),
        build_owned_pod("b", WAITING),
    )
    assert summary(plan) == ["delete a Background", "delete b Background"]


def test_it_goes_once_no_dependent_is_left_and_none_comes() -> None:
    plan = reconcile(WAITING, WAITING)
    assert summary(plan) == ["patch waiting owners= finalizers=None"]
    assert guards(plan) == [[f"unindexed owner:{WAITING.uid}"]]


def test_it_does_not_wait_for_dependents_that_do_not_block() -> None:
    plan = reconcile(WAITING, WAITING, build_owned_pod("a", WAITING))
    assert summary(plan) == ["delete a Background", "patch waiting owners= finalizers=None"]
    assert guards(plan) == [[], []]


def test_it_keeps_waiting_for_dependents_on_their_way_out() -> None:
    plan = reconcile(
        WAITING,
        WAITING,
        mark_deleting(build_owned_pod("a", build_blocking_reference(WAITING)), "x.io/y"),
    )
    assert summary(plan) == []


def test_other_finalizers_stay() -> None:
    waiting = mark_deleting(pod("waiting"), "x.io/y", FOREGROUND)
    assert summary(reconcile(waiting, waiting)) == ["patch waiting owners= finalizers=['x.io/y']"]


def test_a_dependent_with_another_owner_lets_go_of_the_waiting_one() -> None:
    plan = reconcile(
        WAITING, WAITING, OWNER, build_owned_pod("a", build_blocking_reference(WAITING), OWNER)
    )
    assert summary(plan) == ["patch a owners=owner finalizers=None"]


def test_a_dependent_with_dependents_goes_in_the_foreground_too() -> None:
    middle = build_owned_pod("middle", build_blocking_reference(WAITING))
    plan = reconcile(WAITING, WAITING, middle, build_owned_pod("leaf", middle))
    assert summary(plan) == ["delete middle Foreground"]


def test_a_circle_of_waiting_owners_is_broken() -> None:
    middle = build_owned_pod("middle", build_blocking_reference(WAITING))
    start = WAITING.with_metadata(owner_references=[build_blocking_reference(middle)])
    plan = reconcile(start, start, middle)
    unblock, delete = plan.writes
    assert isinstance(unblock, Patch)
    (reference,) = unblock.change(middle).metadata.owner_references or []
    assert reference.block_owner_deletion is False
    assert isinstance(delete, Delete)
    assert delete.options.propagation_policy == "Foreground"
    assert delete.options.resource_version == ""  # the patch before it makes another


# --- orphan


def test_dependents_are_orphaned_before_their_owner_goes() -> None:
    owner = mark_deleting(OWNER, ORPHAN)
    plan = reconcile(
        owner,
        owner,
        build_owned_pod("a", owner),
        build_owned_pod("b", build_blocking_reference(owner), node()),
        node(),
    )
    assert summary(plan) == [
        "patch a owners= finalizers=None",
        "patch b owners=n1 finalizers=None",
        "patch owner owners= finalizers=None",
    ]
    assert [batch.essential for batch in plan.batches] == [True, False]
    assert guards(plan)[-1] == [f"unindexed owner:{owner.uid}"]


def test_the_owner_of_very_many_goes_in_a_later_sync() -> None:
    owner = mark_deleting(OWNER, ORPHAN)
    plan = reconcile(owner, owner, *(build_owned_pod(f"p{n}", owner) for n in range(BURST + 1)))
    assert len(plan.writes) == BURST
    assert plan.requeue_after == 0.0


def test_dependents_in_other_namespaces_and_of_the_cluster_are_orphaned_too() -> None:
    owner = mark_deleting(OWNER, ORPHAN)
    n1 = node("n1", metadata={"owner_references": [owner_reference(owner)]})
    plan = reconcile(owner, owner, n1, build_owned_pod("a", owner, namespace="far"))
    assert [write.old.key for write in plan.writes if isinstance(write, Patch)] == [
        "far/a",
        "n1",
        "default/owner",
    ]


# --- sweep


def test_the_sweep_finds_what_no_event_told_of() -> None:
    waiting_alone = mark_deleting(replica_set("alone"), FOREGROUND)
    objects = (OWNER, build_owned_pod("kept", OWNER), build_owned_pod("lost", GONE), waiting_alone)
    plan = GarbageCollector().sweep(FakeView(*objects), {})
    assert sorted(summary(plan)) == [
        "delete lost Background",
        "patch alone owners= finalizers=None",
    ]
    assert plan.state is None


def test_a_sweep_is_bounded_and_tells_nothing() -> None:
    far = pod("owner", namespace="far")
    objects = [build_owned_pod(f"p{n}", pod(f"gone{n}")) for n in range(BURST + 5)]
    plan = GarbageCollector().sweep(FakeView(*objects, far, build_owned_pod("a", far)), {})
    assert len(plan.writes) == BURST
    assert plan.events == []


def test_a_quiet_world_needs_no_sweeping() -> None:
    assert GarbageCollector().sweep(FakeView(OWNER, build_owned_pod("a", OWNER)), {}).writes == []


# --- the rest


def test_an_item_reads_as_it_prints() -> None:
    text = "replicasets.apps|default/web|6f1c"
    assert str(Item.parse(text)) == text


def test_syncs_run_at_a_time_are_an_option() -> None:
    assert GarbageCollector().concurrent_syncs() == 20
    assert GarbageCollector(GarbageCollectorOptions(concurrent_gc_syncs=3)).concurrent_syncs() == 3
