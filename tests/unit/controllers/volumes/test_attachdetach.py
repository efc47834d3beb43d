"""Volumes are attached to the nodes of their pods, and detached when it is safe.

The cases are those of pkg/controller/volume/attachdetach/reconciler/reconciler_test.go,
attach_detach_controller_test.go, cache/desired_state_of_world_test.go,
populator/desired_state_of_world_populator_test.go and util/util_test.go, Kubernetes 1.33.
Upstream's names are in the comments.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Node
from kcm.api.core_v1.container_statuses import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
)
from kcm.api.core_v1.volumes import EphemeralVolumeSource, Volume
from kcm.api.storage_v1 import VolumeAttachment
from kcm.apimachinery.meta_v1 import KubeObject, format_time
from kcm.controllers.volumes.attachdetach import AttachDetachController
from kcm.controllers.volumes.attachdetach.controller import AttachDetachOptions
from kcm.controllers.volumes.attachdetach.sync import IN_USE, TOTALS
from kcm.helpers.volumes.attachments import KEEP_TERMINATED, MANAGED
from kcm.reconcile.plan import Create, Delete, Outcome
from kcm.store import DeleteOptions
from kcm.testing import builders
from kcm.testing.builders import pod
from kcm.testing.storage_builders import claim, csi_driver, csi_volume, volume_attachment
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World
from tests.unit.controllers.attachdetach_world import (
    BOUND,
    DATA,
    DISK,
    FINALIZER,
    FORCED,
    TAINT,
    attachment,
    events,
    node,
    run,
    settle,
    shared,
    sync,
    user,
)

# --- attaching


def test_nothing_wanted_and_nothing_there_changes_nothing() -> None:  # Test_Run_Positive_DoNothing
    plan = sync(node(), DATA, DISK)
    assert plan.writes == []
    assert plan.requeue_after is None


def test_a_volume_is_attached_to_the_node_of_its_pod() -> None:
    # Test_Run_Positive_OneDesiredVolumeAttach
    plan = sync(node(), DATA, DISK, user())
    (write,) = plan.writes
    assert isinstance(write, Create)
    assert isinstance(write.obj, VolumeAttachment)
    assert write.obj.name == attachment("n1").name
    assert write.obj.spec == attachment("n1").spec
    assert plan.requeue_after == 120


@pytest.mark.parametrize(
    "objects",
    [
        (node(), DISK, user()),  # the claim is gone
        (node(), claim(), DISK, user()),  # or not bound
        (node(), claim(volume_name="other", status=BOUND), DISK, user()),
        (node(), DATA, csi_volume(), user()),  # the volume is not bound to it
        (DATA, DISK, user()),  # the node is gone
        (node(annotations={}), DATA, DISK, user()),  # its kubelet attaches volumes itself
        (node(), DATA, DISK, user(on="")),
        (node(), DATA, DISK, user(phase="Succeeded")),
        (node(), DATA, DISK, user(phase="Failed")),
        (node(), DATA, DISK, user(deleting=NOW)),
        (node(), DATA, DISK, user(), csi_driver(attach_required=False)),
    ],
)
def test_nothing_is_attached_for(objects: Iterable[KubeObject]) -> None:
    # TestFindAndAddActivePods_*, Test_AddPod_Negative_NodeDoesntExist
    assert sync(*objects).writes == []


def test_the_volumes_of_ended_pods_stay_where_the_node_keeps_them() -> None:
    # TestDetermineVolumeActionWithKeepTerminatedPodVolumes
    keeping = node(annotations={MANAGED: "true", KEEP_TERMINATED: "true"})
    ended = user(phase="Succeeded")
    assert run(keeping, DATA, DISK, ended) == (["n1"], [])
    assert run(node(), DATA, DISK, ended) == ([], [])


def test_a_deleted_pod_needs_its_volume_while_a_container_runs() -> None:
    def statuses(state: ContainerState) -> dict[str, Any]:
        return {"container_statuses": [ContainerStatus(name="c", state=state)]}

    running = statuses(ContainerState(running=ContainerStateRunning()))
    ended = statuses(ContainerState(terminated=ContainerStateTerminated()))
    assert run(node(), DATA, DISK, user(deleting=NOW, status=running)) == (["n1"], [])
    assert run(node(), DATA, DISK, user(deleting=NOW, status=ended)) == ([], [])


def test_the_claim_of_an_ephemeral_volume_has_to_be_the_pods_own() -> None:
    # TestEphemeralVolumeOwnerCheck
    subject = pod("web", node="n1", volumes=[Volume(name="v", ephemeral=EphemeralVolumeSource())])
    owner = builders.owner_reference(subject, controller=True)
    own = claim("web-v", volume_name="disk", status=BOUND, metadata={"owner_references": [owner]})
    strange = claim("web-v", volume_name="disk", status=BOUND)
    assert run(node(), own, csi_volume(bound_to=own), subject) == (["n1"], [])
    assert run(node(), strange, csi_volume(bound_to=strange), subject) == ([], [])


def test_an_attached_volume_is_listed_by_its_node_and_its_pods_are_told() -> None:
    plan = sync(node(), DATA, DISK, user(), user("web-2"), attachment())
    text = 'AttachVolume.Attach succeeded for volume "disk" '
    assert events(plan) == [(name, "SuccessfulAttachVolume", text) for name in ("web-1", "web-2")]
    assert settle(World(node(), attachment()), plan) == (["n1"], ["n1"])


def test_an_attached_and_listed_volume_needs_nothing() -> None:
    plan = sync(node(attached=True), DATA, DISK, user(), attachment())
    assert (plan.writes, plan.events, plan.requeue_after) == ([], [], None)


def test_a_failure_is_told_once_and_again_when_it_changes() -> None:
    objects = (node(), DATA, DISK, user())
    failed = attachment(attached=False, error="rpc error: no such disk")
    plan = sync(*objects, failed)
    text = 'AttachVolume.Attach failed for volume "disk" : rpc error: no such disk'
    assert events(plan) == [("web-1", "FailedAttachVolume", text)]
    assert plan.state
    assert sync(*objects, failed, memory=dict(plan.state)).events == []
    again = attachment(attached=False, error="rpc error: too many disks")
    assert len(sync(*objects, again, memory=dict(plan.state)).events) == 1


def test_an_attacher_that_does_not_answer_is_reported_every_two_minutes() -> None:
    objects = (node(), DATA, DISK, user())
    begun = volume_attachment(DISK, attached=False, metadata={"creation_timestamp": NOW})
    plan = sync(*objects, begun, now=NOW + timedelta(seconds=119))
    assert plan.events == []
    assert plan.requeue_after == pytest.approx(1.01)
    plan = sync(*objects, begun, now=NOW + timedelta(seconds=121))
    assert events(plan)[0][2].endswith(
        "timed out waiting for external-attacher of disks.example.com CSI driver to attach volume "
        "disk"
    )
    memory = dict(plan.state or {})
    assert sync(*objects, begun, now=NOW + timedelta(seconds=130), memory=memory).events == []
    assert len(sync(*objects, begun, now=NOW + timedelta(seconds=241), memory=memory).events) == 1


def test_an_attachment_that_somebody_deletes_is_made_again_when_it_is_gone() -> None:
    leaving = {"deletion_timestamp": NOW, "finalizers": [FINALIZER]}
    going = volume_attachment(DISK, metadata=leaving)
    plan = sync(node(attached=True), DATA, DISK, user(), going)
    assert events(plan)[0][2].endswith(": volume attachment is being deleted")
    assert settle(World(node(attached=True), going), plan) == (["n1*"], [])
    assert run(node(attached=True), DATA, DISK, user()) == (["n1"], [])


# --- one node or several


def test_a_shared_volume_is_attached_to_every_node() -> None:
    # Test_Run_OneVolumeAttachAndDetachMultipleNodesWithReadWriteMany
    many, disk = shared()
    pods = (user(), user("web-2", on="n2"))
    assert run(node(), node("n2"), many, disk, *pods) == (["n1", "n2"], [])


def test_a_volume_for_one_node_is_attached_to_the_first_only() -> None:
    # Test_Run_OneVolumeAttachAndDetachMultipleNodesWithReadWriteOnce
    younger = user("web-0", on="n0", metadata={"creation_timestamp": NOW})
    assert run(node(), node("n0"), DATA, DISK, user(), younger) == (["n1"], [])


@pytest.mark.parametrize("attached", [True, False])
def test_an_attachment_elsewhere_keeps_it_from_a_second_node(attached: bool) -> None:
    # Test_ReportMultiAttachError, Test_Run_OneVolumeAttachAndDetachUncertainNodesWithReadWriteOnce
    second = user("web-2", on="n2")
    objects = (node(attached=True), node("n2"), DATA, DISK, user(), second)
    assert run(*objects, attachment(attached=attached))[0] == ["n1"]


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ([], "Volume is already exclusively attached to one node and can't be attached to another"),
        ([("near", "default")], "Volume is already used by pod(s) near"),
        (
            [("near", "default"), ("near2", "default")],
            "Volume is already used by pod(s) near, near2",
        ),
        ([("far", "other")], "Volume is already used by 1 pod(s) in different namespaces"),
        (
            [("near", "default"), ("far", "other")],
            "Volume is already used by pod(s) near and 1 pod(s) in different namespaces",
        ),
    ],
)
def test_a_second_node_is_told_who_has_the_volume(others: list[tuple[str, str]], text: str) -> None:
    # Test_ReportMultiAttachError: pods of two namespaces share a volume by two PersistentVolumes
    far = claim(namespace="other", volume_name="disk-far", status=BOUND)
    sibling = csi_volume("disk-far", handle="disk", bound_to=far)
    there = node(attached=True, in_use=True)
    objects: list[KubeObject] = [there, node("n2"), DATA, DISK, far, sibling]
    objects += [user(name, namespace=namespace) for name, namespace in others]
    plan = sync(*objects, user("late", on="n2"), attachment())
    assert events(plan) == [
        ("late", "FailedAttachVolume", f'Multi-Attach error for volume "disk" {text}')
    ]
    memory = dict(plan.state or {})
    assert sync(*objects, user("late", on="n2"), attachment(), memory=memory).events == []


# --- detaching


def test_a_volume_without_pods_is_taken_from_the_list_and_then_detached() -> None:
    # Test_Run_Positive_OneDesiredVolumeAttachThenDetachWithUnmountedVolume
    objects = (node(attached=True), DATA, DISK, attachment())
    plan = sync(*objects)
    assert [write.old.name for write in plan.writes if not isinstance(write, Create)] == ["n1"]
    assert settle(World(*objects), plan) == (["n1*"], [])


def test_nothing_is_detached_when_the_list_cannot_be_changed() -> None:
    # Test_Run_Negative_OneDesiredVolumeAttachThenDetachWithUnmountedVolumeUpdateStatusFail
    plan = sync(node(attached=True), DATA, DISK, attachment())
    assert plan.batches[0].essential
    assert not any(isinstance(write, Delete) for write in plan.writes)


def test_a_volume_that_its_node_began_to_use_meanwhile_is_not_detached() -> None:
    # verifyVolumeIsSafeToDetach
    objects = (node(attached=True), DATA, DISK, attachment())
    plan = sync(*objects)
    later = node(attached=True, in_use=True).with_metadata(resource_version="2")
    used = World(later, DATA, DISK, attachment())
    assert settle(used, plan) == (["n1"], ["n1"])


def test_a_volume_in_use_waits_for_its_node() -> None:
    # Test_Run_Positive_OneDesiredVolumeAttachThenDetachWithMountedVolume
    objects = (node(attached=True, in_use=True), DATA, DISK, attachment())
    plan = sync(*objects)
    assert plan.writes == []
    assert plan.requeue_after == pytest.approx(360.01)
    assert plan.state == {"detach-since n1": format_time(NOW)}


MINUTES = timedelta(minutes=1)
KEEP = AttachDetachOptions(disable_force_detach_on_timeout=True)
SHORT = AttachDetachOptions(attach_detach_max_wait_for_unmount="10s")


@pytest.mark.parametrize(
    ("there", "waited", "options", "detached", "reason"),
    [
        # Test_Run_OneVolumeDetachOnUnhealthyNode,
        # Test_Run_OneVolumeDetachOnUnhealthyNodeWithForceDetachOnUnmountDisabled
        (node(in_use=True, ready=False), 7 * MINUTES, None, True, "timeout"),
        (node(in_use=True, ready=None), 7 * MINUTES, None, True, "timeout"),
        (node(in_use=True, ready=False), 5 * MINUTES, None, False, ""),
        (node(in_use=True, ready=False), 7 * MINUTES, KEEP, False, ""),
        (node(in_use=True, ready=False), MINUTES, SHORT, True, "timeout"),
        # Test_Run_OneVolumeDetachOnTimeoutHealthyNode
        (node(in_use=True), 7 * MINUTES, None, False, ""),
        # Test_Run_OneVolumeDetachOnOutOfServiceTaintedNode, ...OnNoOutOfServiceTaintedNode
        (node(in_use=True, taints=[TAINT]), timedelta(), None, True, "out-of-service"),
        (node(in_use=True, taints=[TAINT]), timedelta(), KEEP, True, "out-of-service"),
        (node(in_use=True, ready=False), timedelta(), None, False, ""),
        # a node that is gone is assumed to use the volume
        (None, 5 * MINUTES, None, False, ""),
        (None, 7 * MINUTES, None, True, "timeout"),
    ],
)
def test_a_volume_in_use_is_detached_by_force(
    there: Node | None,
    waited: timedelta,
    options: AttachDetachOptions | None,
    detached: bool,
    reason: str,
) -> None:
    objects = [obj for obj in (there, DATA, DISK, attachment()) if obj is not None]
    memory = {"detach-since n1": format_time(NOW - waited)}
    plan = sync(*objects, memory=memory, options=options)
    assert settle(World(*objects), plan)[0] == (["n1*"] if detached else ["n1"])
    counts = {}
    if plan.plan_after is not None:
        after = plan.plan_after(Outcome())
        counts = dict(after.counts_after(Outcome([(w, attachment()) for w in after.writes])))
    assert counts == ({f"{FORCED}|{reason}": 1} if reason else {})


def test_a_pod_that_comes_back_ends_the_wait() -> None:  # ResetDetachRequestTime
    memory = {"detach-since n1": format_time(NOW - 7 * MINUTES)}
    there = node(attached=True, in_use=True, ready=False)
    plan = sync(there, DATA, DISK, attachment(), user(), memory=memory)
    assert plan.writes == []
    assert plan.state == {}


def test_a_volume_whose_claim_is_lost_stays_with_its_pod() -> None:
    lost = claim(volume_name="disk", status={"phase": "Lost"})
    objects = (node(attached=True), lost, DISK, user(), attachment())
    assert run(*objects) == (["n1"], ["n1"])


def test_a_volume_is_detached_when_its_driver_no_longer_attaches() -> None:
    # TestFindAndRemoveNonattachableVolumes
    objects = (node(attached=True), DATA, DISK, user(), attachment())
    assert run(*objects, csi_driver(attach_required=False)) == (["n1*"], [])


def test_a_volume_is_attached_elsewhere_once_it_is_gone_from_a_node() -> None:
    # Test_Run_OneVolumeAttachAndDetachTimeoutNodesWithReadWriteOnce
    world = World(node(attached=True), node("n2"), DATA, DISK, user(on="n2"), attachment())

    def step() -> tuple[list[str], list[str]]:
        return settle(world, sync(*world.objects.values()))

    assert step() == (["n1*"], [])
    assert step() == (["n1*"], [])
    (going,) = world.of(VolumeAttachment)
    world.remove(world.objects["volumeattachments.storage.k8s.io", going.name])
    assert step() == (["n2"], [])


def test_the_attachment_of_a_volume_that_is_gone_is_deleted() -> None:
    # TestADC volume attachments without a PersistentVolume
    assert run(node(attached=True), attachment()) == (["n1*"], [])
    assert run(node(attached=True, in_use=True), attachment()) == (["n1"], ["n1"])


def test_attachments_of_others_are_left_alone() -> None:
    other = volume_attachment(DISK, name="mine")
    assert run(node(), DATA, DISK, other) == (["n1"], [])


def test_the_key_of_a_claim_attaches_and_does_no_more() -> None:
    objects = (node(), node("n2"), DATA, DISK, user())
    plan = sync(*objects, key="default/data")
    assert settle(World(*objects), plan) == (["n1"], [])
    assert sync(*objects, attachment("n2"), key="default/data").writes == []
    assert sync(*objects, key="default/other").writes == []


def test_nothing_is_attached_for_a_pod_that_went_meanwhile() -> None:
    plan = sync(node(), DATA, DISK, user())
    assert settle(World(node(), DATA, DISK), plan) == ([], [])


# --- the reconcile sync


def test_a_node_that_lists_what_is_not_attached_is_corrected() -> None:
    # Test_VerifyVolumesAreAttached
    controller = AttachDetachController()
    (tick,) = controller.ticks()
    assert tick.every == 60
    wrong, right = node(attached=True), node("n2", attached=True)
    world = World(wrong, right, attachment("n2"))
    assert settle(world, tick.run(world.view(), {})) == (["n2"], ["n2"])
    options = AttachDetachOptions(disable_attach_detach_reconcile_sync=True)
    assert AttachDetachController(options).ticks() == ()


def test_the_reconcile_sync_counts_volumes() -> None:  # TestTotalVolumesMetricCollection
    (tick,) = AttachDetachController().ticks()
    plan = tick.run(FakeView(node(), node("n2"), DATA, DISK, user(), attachment()), {})
    plugin = "kubernetes.io/csi:disks.example.com"
    assert plan.state == {
        TOTALS: f'[["{plugin}", "actual_state_of_world", 1], '
        f'["{plugin}", "desired_state_of_world", 1]]',
        IN_USE: f'[["n1", "{plugin}", 1]]',
    }
    assert tick.run(FakeView(node()), {}).state == {}


def test_a_deletion_is_of_one_attachment() -> None:
    plan = sync(node(), DATA, DISK, attachment())
    assert plan.plan_after is not None
    assert plan.plan_after(Outcome()).writes == [
        Delete(attachment(), DeleteOptions(uid=attachment().uid))
    ]
