"""The volumes of pods decide on which nodes they can run.

After TestVolumeBinding (volumebinding/volume_binding_test.go), TestAccessModeConflicts
(volumerestrictions), TestCSILimits (nodevolumelimits) and TestSingleZone (volumezone), Kubernetes
1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.core_v1.persistent_volumes import CSIPersistentVolumeSource
from kcm.api.core_v1.volumes import EphemeralVolumeSource, PersistentVolumeClaimTemplate, Volume
from kcm.api.storage_v1 import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    VolumeNodeResources,
)
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.controllers.scheduler.volumes.view import Handle, StorageView
from kcm.helpers.volumes.binding import SELECTED_NODE
from kcm.reconcile.contract import Change
from kcm.testing import builders
from kcm.testing.storage_builders import volume_attachment
from kcm.testing.views import NOW, FakeView
from tests.unit.controllers.scheduler.plugins.claims import (
    LOCAL,
    TWO,
    bound,
    failure,
    on,
    plan_of,
    user,
    waiting,
)
from tests.unit.controllers.scheduler.world import ZONE, bindings, controller, node, pod
from tests.unit.controllers.volume_builders import COMPLETED, a_claim, a_volume

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
        "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."
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


def test_a_volume_with_the_former_label_of_zones_is_reached_by_the_present_one() -> None:
    former = "failure-domain.beta.kubernetes.io/zone"
    nodes = (node("n1", zone="a"), node("n2", labels={former: "b"}))
    old = a_volume("1Gi", "uid", "claim", "Bound", labels={former: "a"})
    assert bindings(plan_of(user(), bound(), old, *nodes)) == {"user": "n1"}
    new = a_volume("1Gi", "uid", "claim", "Bound", labels={ZONE: "b"})
    assert bindings(plan_of(user(), bound(), new, *nodes)) == {}


def test_a_volume_with_a_zone_is_reached_from_nodes_without_one() -> None:
    volume = a_volume("1Gi", "uid", "claim", "Bound", labels={ZONE: "a"})
    assert bindings(plan_of(user(), bound(), volume, node("n1"))) == {"user": "n1"}


def test_a_claim_of_one_pod_is_used_by_one() -> None:
    claim = bound(access_modes=["ReadWriteOncePod"])
    volume = a_volume("1Gi", "uid", "claim", "Bound", access_modes=["ReadWriteOncePod"])
    other = user(name="other", node="n1", phase="Running", priority=5)
    plan = plan_of(user(), other, claim, volume, *TWO)
    assert failure(plan) == (
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with "
        "ReadWriteOncePod access mode already in-use by another pod."
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
