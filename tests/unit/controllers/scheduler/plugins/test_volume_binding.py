"""Claims that wait for their first consumer get volumes where their pod can run.

After TestVolumeBinding (volumebinding/volume_binding_test.go) and binder_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.core_v1.affinity import (
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from kcm.api.storage_v1 import (
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
)
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.volumes.binding import SELECTED_NODE
from kcm.reconcile.plan import Failure, Outcome, Patch, Plan, Update
from kcm.testing.storage_builders import storage_class
from tests.unit.controllers.scheduler.plugins.claims import (
    LOCAL,
    MANUAL,
    TWO,
    WAITS,
    bound,
    failure,
    on,
    plan_of,
    user,
    waiting,
)
from tests.unit.controllers.scheduler.world import ZONE, bindings, controller, node, pod, run
from tests.unit.controllers.volume_builders import BOUND_BY, a_volume

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
        patch.change(patch.old).status.nominated_node_name
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
