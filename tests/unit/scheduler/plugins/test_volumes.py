"""The volumes of pods decide on which nodes they can run.

After TestVolumeBinding (volumebinding/volume_binding_test.go), TestAccessModeConflicts
(volumerestrictions), TestCSILimits (nodevolumelimits) and TestSingleZone (volumezone), Kubernetes
1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.core_v1.affinity import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from kcm.api.core_v1.persistent_volumes import CSIPersistentVolumeSource, VolumeNodeAffinity
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.api.core_v1.volumes import EphemeralVolumeSource, PersistentVolumeClaimTemplate, Volume
from kcm.api.storage_v1 import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    VolumeNodeResources,
)
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.volumes.binding import SELECTED_NODE
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Failure, Outcome, Patch, Plan, Update
from kcm.scheduler.volumes.view import Handle, StorageView
from kcm.testing import builders
from kcm.testing.storage_builders import storage_class, volume_attachment
from kcm.testing.views import NOW, FakeView
from tests.unit.controllers.volumes import BOUND_BY, COMPLETED, a_claim, a_volume
from tests.unit.scheduler.world import HOST, ZONE, bindings, controller, node, pod, run

WAITS = "WaitForFirstConsumer"
LOCAL = storage_class("local", "kcm.dev/local", volume_binding_mode=WAITS)
MANUAL = storage_class("manual", "kubernetes.io/no-provisioner", volume_binding_mode=WAITS)
TWO = (node("n1"), node("n2"))


def user(*claims: str, name: str = "user", **fields: Any) -> Pod:
    volumes = [
        Volume(
            name=f"v{n}",
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim),
        )
        for n, claim in enumerate(claims or ("claim",))
    ]
    return pod(name, volumes=volumes, **fields)


def on(hostname: str, key: str = HOST) -> VolumeNodeAffinity:
    wanted = NodeSelectorRequirement(key=key, operator="In", values=[hostname])
    terms = [NodeSelectorTerm(match_expressions=[wanted])]
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def bound(**fields: Any) -> PersistentVolumeClaim:
    return a_claim("1Gi", "volume", "Bound", COMPLETED, **fields)


def waiting(storage: str = "local", **fields: Any) -> PersistentVolumeClaim:
    return a_claim(storage_class_name=storage, **fields)


def plan_of(*objects: KubeObject, memory: dict[str, str] | None = None) -> Plan:
    return run(controller(), *objects, memory=memory)


def failure(plan: Plan) -> str:
    (event,) = plan.events
    return event.message.split(" preemption:")[0]


# --- before the nodes are searched


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([], 'persistentvolumeclaim "claim" not found'),
        ([a_claim()], "pod has unbound immediate PersistentVolumeClaims"),
        ([a_claim("1Gi", "volume")], "pod has unbound immediate PersistentVolumeClaims"),
        ([a_claim("1Gi", "volume", "Lost", COMPLETED)],
         'persistentvolumeclaim "claim" bound to non-existent persistentvolume "volume"'),
        ([bound().with_metadata(deletion_timestamp=NOW)],
         'persistentvolumeclaim "claim" is being deleted'),
    ],
)  # fmt: skip
def test_claims_that_no_node_can_help(claims: list[Any], message: str) -> None:
    plan = plan_of(user(), *claims, *TWO)
    assert failure(plan) == f"0/2 nodes are available: {message}."
    assert bindings(plan) == {}


def test_an_ephemeral_volume_waits_for_its_claim_and_takes_no_other() -> None:
    source = EphemeralVolumeSource(volume_claim_template=PersistentVolumeClaimTemplate())
    subject = pod("web", volumes=[Volume(name="scratch", ephemeral=source)])
    assert failure(plan_of(subject, *TWO)) == (
        "0/2 nodes are available: waiting for ephemeral volume controller to create the "
        'persistentvolumeclaim "web-scratch".'
    )
    foreign = bound(name="web-scratch")
    assert "was not created for pod default/web" in failure(plan_of(subject, foreign, *TWO))


# --- bound claims


def test_a_bound_claim_ties_the_pod_to_the_nodes_of_its_volume() -> None:
    volume = a_volume("1Gi", "uid", "claim", "Bound", node_affinity=on("n2"))
    assert bindings(plan_of(user(), bound(), volume, *TWO)) == {"user": "n2"}
    elsewhere = a_volume("1Gi", "uid", "claim", "Bound", node_affinity=on("n3"))
    assert failure(plan_of(user(), bound(), elsewhere, *TWO)) == (
        "0/2 nodes are available: 2 node(s) had volume node affinity conflict."
    )
    assert failure(plan_of(user(), bound(), *TWO)) == (
        "0/2 nodes are available: 2 node(s) unavailable due to one or more pvc(s) bound to "
        "non-existent pv(s)."
    )


@pytest.mark.parametrize(
    ("label", "expected"),
    [("a", {"user": "n1"}), ("a__b", {"user": "n1"}), ("c", {})],
)
def test_a_volume_with_a_zone_is_reached_from_that_zone(
    label: str, expected: dict[str, str]
) -> None:
    volume = a_volume("1Gi", "uid", "claim", "Bound", labels={ZONE: label})
    nodes = (node("n1", zone="a"), node("n2", zone="d"))
    plan = plan_of(user(), bound(), volume, *nodes)
    assert bindings(plan) == expected
    if not expected:
        assert failure(plan) == ("0/2 nodes are available: 2 node(s) had no available volume zone.")


def test_a_volume_with_a_zone_is_reached_from_nodes_without_one() -> None:
    volume = a_volume("1Gi", "uid", "claim", "Bound", labels={ZONE: "a"})
    assert bindings(plan_of(user(), bound(), volume, node("n1"))) == {"user": "n1"}


def test_a_claim_of_one_pod_is_used_by_one() -> None:
    claim = bound(access_modes=["ReadWriteOncePod"])
    volume = a_volume("1Gi", "uid", "claim", "Bound", access_modes=["ReadWriteOncePod"])
    other = user(name="other", node="n1", phase="Running", priority=5)
    plan = plan_of(user(), other, claim, volume, *TWO)
    assert failure(plan) == (
        "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name "
        "and ReadWriteOncePod access mode."
    )
    urgent = user(priority=10)
    evicted = plan_of(urgent, other, claim, volume, *TWO)
    assert [event.reason for event in evicted.events] == ["Preempted", "FailedScheduling"]


def of_csi(n: int) -> list[KubeObject]:
    """Returns a volume of the driver a.b, and the claim that has it."""
    source = CSIPersistentVolumeSource(driver="a.b", volume_handle=f"h{n}")
    volume = a_volume("1Gi", f"u{n}", f"c{n}", "Bound", name=f"v{n}", csi=source, host_path=None)
    return [volume, a_claim("1Gi", f"v{n}", "Bound", COMPLETED, name=f"c{n}", uid=f"u{n}")]


def limit_of(name: str, count: int) -> CSINode:
    limit = VolumeNodeResources(count=count)
    drivers = [CSINodeDriver(name="a.b", node_id="n", allocatable=limit)]
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))


def test_a_node_takes_no_more_volumes_than_its_driver_says() -> None:
    present = user("c0", name="present", node="n1", phase="Running")
    objects = [limit_of("n1", 2), node("n1"), present, *of_csi(0), *of_csi(1), *of_csi(2)]
    assert bindings(plan_of(user("c0", "c1"), *objects)) == {"user": "n1"}
    assert failure(plan_of(user("c1", "c2"), *objects)) == (
        "0/1 nodes are available: 1 node(s) exceed max volume count."
    )
    # a volume of no pod counts while it is attached
    (third, _) = of_csi(2)
    assert isinstance(third, PersistentVolume)
    left = [*objects, volume_attachment(third)]
    assert bindings(plan_of(user("c0"), *left)) == {"user": "n1"}
    assert failure(plan_of(user("c1"), *left)).startswith("0/1 nodes are available: 1 node(s) exce")


def test_pods_of_one_pass_count_against_the_limit_of_their_node() -> None:
    objects = [limit_of("n1", 2), node("n1"), *of_csi(0), *of_csi(1), *of_csi(2)]
    pods = [user(f"c{n}", name=f"p{n}") for n in range(3)]
    assert len(bindings(plan_of(*pods, *objects))) == 2
    shared = [user("c0", name="p0"), user("c0", name="p1"), user("c1", name="p2")]
    assert len(bindings(plan_of(*shared, *objects))) == 3


def test_a_pass_finds_the_volume_of_a_claim_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    find = StorageView.handle_of

    def count(storage: StorageView, claim: PersistentVolumeClaim) -> Handle | None:
        asked.append(claim.name)
        return find(storage, claim)

    monkeypatch.setattr(StorageView, "handle_of", count)
    used, wanted = range(20), range(20, 25)
    objects = [limit_of("n1", 40), node("n1"), *(o for n in (*used, *wanted) for o in of_csi(n))]
    present = [user(f"c{n}", name=f"p{n}", node="n1", phase="Running") for n in used]
    pending = [user(f"c{n}", name=f"p{n}") for n in wanted]
    assert len(bindings(plan_of(*pending, *present, *objects))) == len(wanted)
    assert len(asked) <= len(used) + 2 * len(wanted)


# --- claims that wait for their first consumer


def claims_written(plan: Plan) -> dict[str, str]:
    """The node that the plan writes into each claim."""
    return {
        write.new.name: write.new.annotations[SELECTED_NODE]
        for write in plan.writes
        if isinstance(write, Update) and isinstance(write.new, PersistentVolumeClaim)
    }


def volumes_written(plan: Plan) -> dict[str, str]:
    """The claim that the plan reserves each volume for."""
    return {
        write.new.name: (write.new.spec.claim_ref.name or "")
        for write in plan.writes
        if isinstance(write, Update)
        and isinstance(write.new, PersistentVolume)
        and write.new.spec.claim_ref is not None
    }


def test_a_volume_is_made_on_the_node_that_the_pod_gets() -> None:
    plan = plan_of(user(), waiting(), LOCAL, node("n1"))
    assert bindings(plan) == {}
    assert claims_written(plan) == {"claim": "n1"}
    assert plan.events == []
    (patch,) = (write for write in plan.writes if isinstance(write, Patch))
    held = patch.change(patch.old)
    assert isinstance(held, Pod)
    assert held.status.nominated_node_name == "n1"


def test_a_pod_whose_volume_is_under_way_is_tried_again_when_its_claim_changes() -> None:
    scheduler = controller()
    subject = user()
    first = run(scheduler, subject, waiting(), LOCAL, node("n1"), position=10)
    memory = dict(first.state or {})
    chosen = waiting(annotations={SELECTED_NODE: "n1"}).with_metadata(resource_version="11")
    held = subject.with_metadata(resource_version="12")
    held = held.with_status(held.status.replace(nominated_node_name="n1"))
    nothing = run(scheduler, held, chosen, LOCAL, node("n1"), memory=memory, position=12)
    assert nothing.writes == []
    done = bound(storage_class_name="local").with_metadata(resource_version="14")
    volume = a_volume("1Gi", "uid", "claim", "Bound", BOUND_BY, node_affinity=on("n1"))
    memory = dict(nothing.state or {})
    last = run(scheduler, held, done, volume, LOCAL, node("n1"), memory=memory, position=14)
    assert bindings(last) == {"user": "n1"}


@pytest.mark.parametrize("objects", [
    [waiting(), LOCAL],
    [waiting("manual"), MANUAL, a_volume(storage_class_name="manual")],
])  # fmt: skip
def test_a_pod_whose_claim_or_volume_others_wrote_meanwhile_is_tried_again_at_once(
    objects: list[KubeObject],
) -> None:
    subject = user()
    plan = plan_of(subject, *objects, node("n1"))
    (write,) = (write for write in plan.writes if isinstance(write, Update))
    assert plan.plan_after is not None
    lost = plan.plan_after(Outcome(failures=[Failure(write, errors.Conflict("old"), True)]))
    assert subject.uid not in (lost.state or {})
    assert lost.requeue_after == 0
    kept = plan.plan_after(Outcome(done=[(write, write.new)]))
    assert subject.uid in (plan.state or {})
    assert kept.state is None
    assert kept.requeue_after == plan.requeue_after


def test_a_claim_whose_node_is_chosen_goes_nowhere_else() -> None:
    chosen = waiting(annotations={SELECTED_NODE: "n9"})
    assert failure(plan_of(user(), chosen, LOCAL, *TWO)) == (
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    )


def test_a_volume_that_fits_is_reserved_and_the_smallest_goes_to_the_smallest() -> None:
    volumes = [
        a_volume(size, name=name, storage_class_name="manual", node_affinity=on("n1"))
        for name, size in (("large", "10Gi"), ("small", "2Gi"))
    ]
    claims = [
        waiting("manual", name="a", uid="a", size="5Gi"),
        waiting("manual", name="b", uid="b", size="1Gi"),
    ]
    plan = plan_of(user("a", "b"), *claims, *volumes, MANUAL, *TWO)
    assert volumes_written(plan) == {"small": "b", "large": "a"}
    assert bindings(plan) == {}


def test_one_volume_is_reserved_for_one_claim_in_a_pass() -> None:
    volume = a_volume(storage_class_name="manual")
    claims = [waiting("manual", name=name, uid=name) for name in "ab"]
    users = [user(name, name=f"pod-{name}") for name in "ab"]
    plan = plan_of(*users, *claims, volume, MANUAL, *TWO)
    assert list(volumes_written(plan)) == ["volume"]
    assert failure(plan) == (
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    )


def test_two_pods_of_one_claim_get_the_same_node() -> None:
    users = [user(name="a"), user(name="b")]
    plan = plan_of(*users, waiting(), LOCAL, *TWO)
    (chosen,) = set(claims_written(plan).values())
    held = {
        patch.change(patch.old).status.nominated_node_name  # type: ignore[attr-defined] # pods
        for patch in plan.writes
        if isinstance(patch, Patch)
    }
    assert held == {chosen}


def test_the_place_of_a_pod_that_waits_for_its_volume_is_kept() -> None:
    small = node("n1", cpu="1")
    plan = plan_of(user(cpu=1, priority=1), pod("other", cpu=1), waiting(), LOCAL, small)
    assert claims_written(plan) == {"claim": "n1"}
    assert bindings(plan) == {}
    assert failure(plan).startswith("0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (storage_class("local", "a.b", volume_binding_mode=WAITS), "n1"),
        (storage_class("local", "a.b", volume_binding_mode=WAITS, allowed_topologies=[
            TopologySelectorTerm(match_label_expressions=[
                TopologySelectorLabelRequirement(key=ZONE, values=["a"])])]), "n1"),
        (storage_class("local", "a.b", volume_binding_mode=WAITS, allowed_topologies=[
            TopologySelectorTerm(match_label_expressions=[
                TopologySelectorLabelRequirement(key=ZONE, values=["b"])])]), ""),
    ],
)  # fmt: skip
def test_a_class_makes_volumes_in_its_topologies(offered: Any, expected: str) -> None:
    plan = plan_of(user(), waiting(), offered, node("n1", zone="a"))
    assert claims_written(plan) == ({"claim": expected} if expected else {})


@pytest.mark.parametrize(
    ("capacity", "zone", "enough"),
    [("1Gi", "a", True), ("1Mi", "a", False), ("1Gi", "b", False), (None, "a", False)],
)
def test_a_driver_that_publishes_capacities_must_have_room(
    capacity: str | None, zone: str, enough: bool
) -> None:
    offered = storage_class("local", "a.b", volume_binding_mode=WAITS)
    driver = CSIDriver(metadata=ObjectMeta(name="a.b"), spec=CSIDriverSpec(storage_capacity=True))
    room = CSIStorageCapacity(
        metadata=ObjectMeta(name="c", namespace="kube-system"),
        storage_class_name="local",
        node_topology=LabelSelector(match_labels={ZONE: zone}),
        capacity=None if capacity is None else Quantity(capacity),
    )
    plan = plan_of(user(), waiting(), offered, driver, room, node("n1", zone="a"))
    assert bool(claims_written(plan)) == enough
    if not enough:
        assert failure(plan) == (
            "0/1 nodes are available: 1 node(s) did not have enough free storage."
        )


# --- what wakes schedulers


def test_changes_of_storage_wake_schedulers_whose_pods_they_may_help() -> None:
    def woken(change: Change, *others: KubeObject) -> bool:
        subject = controller()
        view = FakeView(*others)
        return any(
            list(watch.keys(change, view))
            for watch in subject.watches()
            if watch.model is type(change.object)
        )

    placed = user(name="placed", node="n1", phase="Running")
    assert woken(Change(None, a_claim()), user())
    assert not woken(Change(None, a_claim()), placed, builders.pod("x"))
    assert not woken(Change(a_claim(), None), user())
    chosen = waiting(annotations={SELECTED_NODE: "n1"})
    assert not woken(Change(waiting(), chosen), user())  # that is the scheduler's own doing
    assert woken(Change(chosen, waiting()), user())
    assert woken(Change(chosen, bound(storage_class_name="local")), user())
    assert woken(Change(None, a_volume()))
    assert not woken(Change(None, a_volume("1Gi", "uid", "claim", "Bound")))
    moved = a_volume("1Gi", "uid", "claim", "Bound", node_affinity=on("n2"))
    assert woken(Change(a_volume("1Gi", "uid", "claim", "Bound"), moved))
    assert woken(Change(None, LOCAL))
