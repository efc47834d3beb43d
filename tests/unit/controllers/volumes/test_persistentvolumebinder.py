"""Claims are bound to volumes, and volumes reclaimed.

The tables are those of TestSync, TestMultiSync and TestDeleteSync in
pkg/controller/volume/persistentvolume/{binder,delete}_test.go, Kubernetes 1.33, under their
numbers.
"""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import CLASS_ANNOTATION
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.volumes.persistentvolumebinder import PersistentVolumeBinderController
from kcm.helpers.volumes.binding import PROVISIONED_BY
from kcm.reconcile.plan import Plan
from kcm.testing.builders import pod
from kcm.testing.world import World
from tests.unit.controllers.volume_builders import (
    BOUND_BY,
    COMPLETED,
    LABELS,
    a_claim,
    a_volume,
    shown_claim,
    shown_volume,
)

CONTROLLER = PersistentVolumeBinderController()
NOTHING_FITS = "Normal FailedBinding"


def sync(world: World, subject: KubeObject) -> Plan:
    plan = CONTROLLER.reconcile(subject.key, world.view())
    world.carry_out(plan)
    return plan


def reasons(plan: Plan) -> list[str]:
    return [f"{event.type} {event.reason}" for event in plan.events]


def volumes_of(world: World) -> list[str]:
    found = [obj for obj in world.of(PersistentVolume) if isinstance(obj, PersistentVolume)]
    return [shown_volume(volume) for volume in sorted(found, key=lambda v: v.name)]


@pytest.mark.parametrize(
    ("claim", "volumes", "claim_after", "volumes_after", "events"),
    [
        # [Unit test set 1] User did not care which PV they get.
        pytest.param(
            a_claim(), [a_volume()],
            "Bound volume 1Gi bound-by completed", ["Bound claim/uid bound-by"], [],
            id="1-1 successful bind"),
        pytest.param(
            a_claim("10Gi"), [a_volume()], "Pending", ["Available"], [NOTHING_FITS],
            id="1-2 noop"),
        pytest.param(
            a_claim("10Gi", None, "Bound"), [a_volume()], "Pending", ["Available"],
            [NOTHING_FITS],
            id="1-3 reset to Pending"),
        pytest.param(
            a_claim(), [a_volume("10Gi", name="v1"), a_volume(name="v2")],
            "Bound v2 1Gi bound-by completed", ["Available", "Bound claim/uid bound-by"], [],
            id="1-4 smallest volume"),
        pytest.param(
            a_claim(), [a_volume("10Gi", "", "claim", name="v1"), a_volume(name="v2")],
            "Bound v1 10Gi bound-by completed", ["Bound claim/uid", "Available"], [],
            id="1-5 prebound volume by name - success"),
        pytest.param(
            a_claim(), [a_volume("10Gi", "uid", "claim", name="v1"), a_volume(name="v2")],
            "Bound v1 10Gi bound-by completed", ["Bound claim/uid", "Available"], [],
            id="1-6 prebound volume by UID - success"),
        pytest.param(
            a_claim(), [a_volume("10Gi", "uid1-777", "claim")],
            "Pending", ["Available claim/uid1-777"], [NOTHING_FITS],
            id="1-7 prebound volume to different claim"),
        pytest.param(
            a_claim(), [a_volume("1Gi", "uid", "claim", "Available", BOUND_BY)],
            "Bound volume 1Gi bound-by completed", ["Bound claim/uid bound-by"], [],
            id="1-8 complete bind after crash - PV bound"),
        pytest.param(
            a_claim(), [a_volume("1Gi", "uid", "claim", "Bound", BOUND_BY)],
            "Bound volume 1Gi bound-by completed", ["Bound claim/uid bound-by"], [],
            id="1-9 complete bind after crash - PV status saved"),
        pytest.param(
            a_claim("1Gi", "volume", "Pending", BOUND_BY, COMPLETED),
            [a_volume("1Gi", "uid", "claim", "Bound", BOUND_BY)],
            "Bound volume 1Gi bound-by completed", ["Bound claim/uid bound-by"], [],
            id="1-10 complete bind after crash - PVC bound"),
        pytest.param(
            a_claim(labels=LABELS), [a_volume(labels=LABELS)],
            "Bound volume 1Gi bound-by completed", ["Bound claim/uid bound-by"], [],
            id="1-11 bind when selector matches"),
        pytest.param(
            a_claim(labels=LABELS), [a_volume()], "Pending", ["Available"], [NOTHING_FITS],
            id="1-12 do not bind when selector does not match"),
        pytest.param(
            a_claim(volume_mode="Block"), [a_volume()], "Pending", ["Available"],
            [NOTHING_FITS], id="1-15 different volumeMode"),
        pytest.param(
            a_claim(access_modes=["ReadWriteMany"]), [a_volume()], "Pending", ["Available"],
            [NOTHING_FITS], id="1-16 different access mode"),
        pytest.param(
            a_claim(), [a_volume("1Gi", "", "", "Pending")], "Pending", ["Pending"],
            [NOTHING_FITS], id="1-17 volume is not available yet"),
        # [Unit test set 2] User asked for a specific PV.
        pytest.param(
            a_claim("10Gi", "volume"), [], "Pending volume", [], [],
            id="2-1 claim prebound to non-existing volume - noop"),
        pytest.param(
            a_claim("10Gi", "volume", "Bound"), [], "Pending volume", [], [],
            id="2-2 claim prebound to non-existing volume - reset status"),
        pytest.param(
            a_claim("1Gi", "volume"), [a_volume()],
            "Bound volume 1Gi completed", ["Bound claim/uid bound-by"], [],
            id="2-3 claim prebound to unbound volume"),
        pytest.param(
            a_claim("1Gi", "volume"), [a_volume("1Gi", "", "claim")],
            "Bound volume 1Gi completed", ["Bound claim/uid"], [],
            id="2-4 claim prebound to prebound volume by name"),
        pytest.param(
            a_claim("1Gi", "volume"), [a_volume("1Gi", "uid", "claim")],
            "Bound volume 1Gi completed", ["Bound claim/uid"], [],
            id="2-5 claim prebound to prebound volume by UID"),
        pytest.param(
            a_claim("1Gi", "volume", "Bound"), [a_volume("1Gi", "uid_1", "claim_1", "Bound")],
            "Pending volume", ["Bound claim_1/uid_1"], ["Warning FailedBinding"],
            id="2-6 claim prebound to already bound volume"),
        pytest.param(
            a_claim("1Gi", "volume", "Bound", BOUND_BY),
            [a_volume("1Gi", "uid_1", "claim_1", "Bound")],
            "Bound volume 1Gi bound-by", ["Bound claim_1/uid_1"], ["Warning FailedBinding"],
            id="2-7 claim bound by controller to already bound volume"),
        pytest.param(
            a_claim("1Gi", "volume", labels=LABELS), [a_volume()],
            "Bound volume 1Gi completed", ["Bound claim/uid bound-by"], [],
            id="2-8 claim prebound to unbound volume that does not match the selector"),
        pytest.param(
            a_claim("2Gi", "volume"), [a_volume()],
            "Pending volume", ["Available"], ["Warning VolumeMismatch"],
            id="2-9 claim prebound to unbound volume that size mismatch"),
        pytest.param(
            a_claim("1Gi", "volume", storage_class_name="gold"), [a_volume()],
            "Pending volume", ["Available"], ["Warning VolumeMismatch"],
            id="2-10 claim prebound to unbound volume that class mismatch"),
        # [Unit test set 3] Syncing bound claim
        pytest.param(
            a_claim("10Gi", None, "Bound", BOUND_BY, COMPLETED), [],
            "Lost bound-by completed", [], ["Warning ClaimLost"],
            id="3-1 bound claim with missing VolumeName"),
        pytest.param(
            a_claim("10Gi", "volume", "Bound", BOUND_BY, COMPLETED), [],
            "Lost volume bound-by completed", [], ["Warning ClaimLost"],
            id="3-2 bound claim with missing volume"),
        pytest.param(
            a_claim("10Gi", "volume", "Pending", BOUND_BY, COMPLETED), [a_volume("10Gi")],
            "Bound volume 10Gi bound-by completed", ["Bound claim/uid bound-by"], [],
            id="3-3 bound claim with unbound volume"),
        pytest.param(
            a_claim("10Gi", "volume", "Pending", BOUND_BY, COMPLETED),
            [a_volume("10Gi", "claim-x", "claim")],
            "Lost volume bound-by completed", ["Available claim/claim-x"],
            ["Warning ClaimMisbound"],
            id="3-4 bound claim with prebound volume"),
        pytest.param(
            a_claim("10Gi", "volume", "Pending", COMPLETED), [a_volume("10Gi", "uid", "claim")],
            "Bound volume 10Gi completed", ["Bound claim/uid"], [],
            id="3-5 bound claim with bound volume"),
        pytest.param(
            a_claim("10Gi", "volume", "Pending", COMPLETED),
            [a_volume("10Gi", "uid-x", "claim-x")],
            "Lost volume completed", ["Available claim-x/uid-x"], ["Warning ClaimMisbound"],
            id="3-6 bound claim with bound volume of another"),
        pytest.param(
            a_claim("10Gi", "volume", "Pending", BOUND_BY, COMPLETED, labels=LABELS),
            [a_volume("10Gi")],
            "Bound volume 10Gi bound-by completed", ["Bound claim/uid bound-by"], [],
            id="3-7 bound claim with unbound volume where selector doesn't match"),
        # PVC with class
        pytest.param(
            a_claim(storage_class_name="gold"),
            [a_volume(name="v1"), a_volume("10Gi", name="v2", storage_class_name="gold")],
            "Bound v2 10Gi bound-by completed", ["Available", "Bound claim/uid bound-by"], [],
            id="13-1 binding to class"),
        pytest.param(
            a_claim(),
            [a_volume(name="v1", storage_class_name="gold"), a_volume("10Gi", name="v2")],
            "Bound v2 10Gi bound-by completed", ["Available", "Bound claim/uid bound-by"], [],
            id="13-2 binding without a class"),
        pytest.param(
            a_claim(annotations={CLASS_ANNOTATION: "gold"}),
            [a_volume(name="v1", storage_class_name="silver"),
             a_volume("10Gi", name="v2", storage_class_name="gold")],
            "Bound v2 10Gi bound-by completed", ["Available", "Bound claim/uid bound-by"], [],
            id="13-3 binding to specific a class"),
        pytest.param(
            a_claim(storage_class_name=""), [a_volume()],
            "Bound volume 1Gi bound-by completed", ["Bound claim/uid bound-by"], [],
            id="13-4 empty class"),
    ],
)  # fmt: skip
def test_claims(
    claim: PersistentVolumeClaim,
    volumes: list[PersistentVolume],
    claim_after: str,
    volumes_after: list[str],
    events: list[str],
) -> None:
    world = World(claim, *volumes)
    plan = sync(world, claim)
    after = world.find(claim)
    assert isinstance(after, PersistentVolumeClaim)
    assert shown_claim(after) == claim_after
    assert volumes_of(world) == volumes_after
    assert reasons(plan) == events
    assert (plan.error is not None) == (claim_after == "Bound volume 1Gi bound-by")
    assert world.failures == []


EXTERNAL = "external.io/test"


@pytest.mark.parametrize(
    ("volume", "claim", "expected", "events"),
    [
        pytest.param(a_volume("10Gi", "", "", "Pending"), None, "Available", [],
                     id="4-1 pending volume"),
        pytest.param(a_volume("10Gi", "", "claim", "Pending"), None, "Available claim/", [],
                     id="4-2 pending prebound volume"),
        pytest.param(a_volume("10Gi", "uid", "claim", "Bound"), None, "Released claim/uid", [],
                     id="4-3 bound volume with missing claim"),
        pytest.param(a_volume("10Gi", "uid", "claim", "Bound"),
                     a_claim("10Gi", "volume", "Bound", COMPLETED, uid="uid-x"),
                     "Released claim/uid", [],
                     id="4-4 volume bound to claim with different UID"),
        pytest.param(a_volume("10Gi", "uid", "claim", "Bound", BOUND_BY), a_claim("10Gi"),
                     "Bound claim/uid bound-by", [],
                     id="4-5 volume bound by controller to unbound claim"),
        pytest.param(a_volume("10Gi", "uid", "claim", "Available"),
                     a_claim("10Gi", "volume", "Bound"), "Bound claim/uid", [],
                     id="4-6 volume bound by to bound claim"),
        pytest.param(a_volume("10Gi", "uid", "claim", "Bound", BOUND_BY),
                     a_claim("10Gi", "volume-x", "Bound"), "Available", [],
                     id="4-7 volume bound by controller to claim bound somewhere else"),
        pytest.param(a_volume("10Gi", "uid", "claim", "Bound"),
                     a_claim("10Gi", "volume-x", "Bound"), "Available claim/", [],
                     id="4-8 volume bound by user to claim bound somewhere else"),
        pytest.param(a_volume("1Gi", "uid", "claim", "Bound", policy="Delete"), None,
                     "Failed claim/uid", ["Warning VolumeFailedDelete"],
                     id="8-3 plugin not found"),
        pytest.param(a_volume("1Gi", "uid", "claim", "Bound", BOUND_BY, policy="Recycle"), None,
                     "Failed claim/uid bound-by", ["Warning VolumeFailedRecycle"],
                     id="6-4 recycler not found"),
        pytest.param(a_volume("1Gi", "uid", "claim", "Bound", policy="Unknown"), None,
                     "Failed claim/uid", ["Warning VolumeUnknownReclaimPolicy"],
                     id="6-9 unknown reclaim policy"),
    ],
)  # fmt: skip
def test_volumes(
    volume: PersistentVolume,
    claim: PersistentVolumeClaim | None,
    expected: str,
    events: list[str],
) -> None:
    world = World(volume, *([claim] if claim else []))
    plan = sync(world, volume)
    after = world.find(volume)
    assert isinstance(after, PersistentVolume)
    assert shown_volume(after) == expected
    assert reasons(plan) == events
    if after.status.phase != volume.status.phase:
        assert after.status.last_phase_transition_time == world.now
    again = sync(world, after)
    assert (again.writes, again.events) == ([], [])  # said once


def provisioned(provisioner: str, uid: str = "uid") -> PersistentVolume:
    made = a_volume("1Gi", uid, "claim", "Bound", BOUND_BY, policy="Delete")
    marks = {**made.annotations, PROVISIONED_BY: provisioner}
    return made.with_metadata(annotations=marks)


def test_8_1_a_volume_of_our_own_is_deleted_with_its_claim() -> None:
    world = World(provisioned("kcm.dev/local"))
    sync(world, provisioned("kcm.dev/local"))
    assert volumes_of(world) == []


def test_8_10_a_volume_of_an_external_provisioner_waits_for_it() -> None:
    world = World(provisioned(EXTERNAL))
    plan = sync(world, provisioned(EXTERNAL))
    assert (volumes_of(world), plan.events) == (["Released claim/uid bound-by"], [])


def test_8_11_of_two_volumes_made_for_one_claim_the_other_goes() -> None:
    elsewhere = a_claim("1Gi", "volume-2", "Bound")
    world = World(provisioned("kcm.dev/local"), elsewhere)
    sync(world, provisioned("kcm.dev/local"))
    assert volumes_of(world) == []


def test_10_2_of_two_volumes_bound_to_one_claim_one_is_freed() -> None:
    both = [a_volume("1Gi", "uid", "claim", "Bound", BOUND_BY, name=name) for name in ("a", "b")]
    claim = a_claim("1Gi", "a", "Bound", BOUND_BY, COMPLETED)
    world = World(claim, *both)
    for subject in (claim, *both):
        sync(world, subject)
    assert volumes_of(world) == ["Bound claim/uid bound-by", "Available"]


def test_a_claim_with_several_modes_takes_the_volume_with_the_fewest() -> None:
    modes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"]
    able = a_volume(name="a", access_modes=modes)
    plain = a_volume("5Gi", name="b")
    world = World(a_claim(), able, plain)
    sync(world, a_claim())
    assert volumes_of(world) == ["Available", "Bound claim/uid bound-by"]


def test_a_claim_waits_for_another_volume_when_its_own_is_bound() -> None:
    first, second = a_claim(name="a", uid="a"), a_claim(name="b", uid="b")
    world = World(first, second, a_volume())
    sync(world, first)
    left = CONTROLLER.reconcile(second.key, world.view())
    assert [event.reason for event in left.events] == ["FailedBinding"]
    assert left.requeue_after == CONTROLLER.options.pvclaimbinder_sync_period.total_seconds()


def test_a_pod_does_not_matter_to_a_claim_without_a_class() -> None:
    world = World(a_claim(), pod())
    assert reasons(sync(world, a_claim())) == [NOTHING_FITS]
