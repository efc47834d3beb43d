"""Volumes are made for claims, by kcm or by others, when the class says so.

After TestProvisionSync in pkg/controller/volume/persistentvolume/provision_test.go, Kubernetes
1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.api.core_v1.volumes import Volume
from kcm.api.storage_v1 import IS_DEFAULT, StorageClass
from kcm.api.volumes.local import PROVISIONER, handle_of
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.volumes.persistentvolumebinder import PersistentVolumeBinderController
from kcm.controllers.volumes.persistentvolumebinder.keys import of_claim, of_class, of_volume
from kcm.helpers.volumes.binding import (
    BETA_STORAGE_PROVISIONER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    reaches,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Create, Plan
from kcm.testing.builders import node, pod
from kcm.testing.storage_builders import storage_class
from kcm.testing.views import FakeView
from kcm.testing.world import World
from tests.unit.controllers.volume_builders import (
    BOUND_BY,
    COMPLETED,
    a_claim,
    a_volume,
    shown_claim,
)

CONTROLLER = PersistentVolumeBinderController()
WAITS: dict[str, Any] = {"volume_binding_mode": "WaitForFirstConsumer"}
LOCAL = storage_class("local", PROVISIONER, **WAITS)
NODE = node("n1")


def wanting(storage: str = "local", selected: str = "", **fields: Any) -> PersistentVolumeClaim:
    annotations = {SELECTED_NODE: selected} if selected else {}
    return a_claim(storage_class_name=storage, annotations=annotations, **fields)


def user(*, node: str | None = None, name: str = "user") -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name="claim")
    return pod(name, node=node, volumes=[Volume(name="v", persistent_volume_claim=source)])


def sync(world: World, subject: KubeObject) -> Plan:
    """Syncs once, without the plan that follows what was created."""
    plan = CONTROLLER.reconcile(subject.key, world.view())
    follows, plan.plan_after = plan.plan_after, None
    outcome = world.carry_out(plan)
    plan.events += plan.events_after(outcome)
    plan.plan_after = follows
    return plan


def event_of(plan: Plan) -> str:
    (event,) = plan.events
    return f"{event.type} {event.reason} {event.message}"


# --- waiting for the first consumer


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], "WaitForFirstConsumer waiting for first consumer to be created before binding"),
        ([user(node="n1")],
         "WaitForFirstConsumer waiting for first consumer to be created before binding"),
        ([user()], "WaitForPodScheduled waiting for pod user to be scheduled"),
        ([user(), user(name="b")],
         "WaitForPodScheduled waiting for pods b,user to be scheduled"),
    ],
)  # fmt: skip
def test_a_claim_that_waits_says_for_what(pods: list[Pod], expected: str) -> None:
    world = World(wanting(), LOCAL, a_volume(storage_class_name="local"), *pods)
    assert event_of(sync(world, wanting())) == f"Normal {expected}"
    assert world.of(PersistentVolume)[0].status.phase == "Available"


def test_a_waiting_claim_takes_a_volume_that_is_reserved_for_it() -> None:
    reserved = a_volume("1Gi", "uid", "claim", "Available", BOUND_BY, storage_class_name="local")
    world = World(wanting(), LOCAL, reserved)
    sync(world, wanting())
    after = world.find(wanting())
    assert isinstance(after, PersistentVolumeClaim)
    assert shown_claim(after) == "Bound volume 1Gi bound-by completed"


# --- folders on nodes


def test_a_folder_is_made_on_the_chosen_node_and_bound() -> None:
    claim = wanting(selected="n1")
    world = World(claim, LOCAL, NODE)
    plan = sync(world, claim)
    assert event_of(plan) == (
        "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid using kcm.dev/local"
    )
    (volume,) = world.of(PersistentVolume)
    assert isinstance(volume, PersistentVolume)
    assert handle_of(volume) == "pvc-uid"
    assert str((volume.spec.capacity or {})["storage"]) == "1Gi"
    assert volume.spec.persistent_volume_reclaim_policy == "Delete"
    assert reaches(volume, NODE.labels)
    assert not reaches(volume, node("n2").labels)
    sync(world, claim)
    sync(world, volume)
    after = world.find(claim)
    assert isinstance(after, PersistentVolumeClaim)
    assert shown_claim(after) == "Bound pvc-uid 1Gi bound-by completed"
    assert after.annotations[STORAGE_PROVISIONER] == PROVISIONER
    assert world.failures == []
    assert len(world.of(PersistentVolume)) == 1


def test_a_kill_in_mid_provisioning_leaves_one_volume() -> None:
    claim = wanting(selected="n1")
    world = World(claim, LOCAL, NODE)
    view = world.view()
    plans = [CONTROLLER.reconcile(claim.key, view) for _ in range(2)]  # the second is a repeat
    plans[0].plan_after = None  # killed
    world.carry_out(plans[0])
    world.carry_out(CONTROLLER.reconcile(claim.key, world.view()))
    after = world.find(claim)
    assert isinstance(after, PersistentVolumeClaim)
    assert shown_claim(after) == "Bound pvc-uid 1Gi bound-by completed"
    assert len([write for write in plans[1].writes if isinstance(write, Create)]) == 1
    assert len(world.of(PersistentVolume)) == 1


def test_a_volume_that_was_made_is_bound_in_the_same_sync() -> None:
    claim = wanting(selected="n1")
    world = World(claim, LOCAL, NODE)
    world.carry_out(CONTROLLER.reconcile(claim.key, world.view()))
    after = world.find(claim)
    assert isinstance(after, PersistentVolumeClaim)
    assert shown_claim(after) == "Bound pvc-uid 1Gi bound-by completed"
    (volume,) = world.of(PersistentVolume)
    assert isinstance(volume, PersistentVolume)
    assert volume.status.phase == "Bound"
    assert world.failures == []


@pytest.mark.parametrize(
    ("claim", "offered", "why"),
    [
        (wanting(), storage_class("local", PROVISIONER),
         "kcm.dev/local needs a class with volumeBindingMode WaitForFirstConsumer"),
        (wanting(selected="n1", access_modes=["ReadWriteMany"]), LOCAL,
         "kcm.dev/local makes volumes of one node, which cannot have ReadWriteMany"),
        (wanting(selected="n1", volume_mode="Block"), LOCAL,
         "kcm.dev/local makes folders, not block devices"),
        (wanting(selected="n1", labels={"a": "b"}), LOCAL,
         "kcm.dev/local cannot choose volumes by labels"),
    ],
)  # fmt: skip
def test_what_a_folder_cannot_be_is_said(
    claim: PersistentVolumeClaim, offered: StorageClass, why: str
) -> None:
    plan = sync(World(claim, offered, NODE), claim)
    assert event_of(plan) == (
        f'Warning ProvisioningFailed Failed to provision volume with StorageClass "local": {why}'
    )
    assert plan.writes == []


def test_a_node_that_is_gone_is_chosen_again() -> None:
    claim = wanting(selected="gone")
    world = World(claim, LOCAL, NODE)
    assert "Failed to get target node" in event_of(sync(world, claim))
    after = world.find(claim)
    assert after is not None
    assert SELECTED_NODE not in after.annotations


# --- external provisioners


@pytest.mark.parametrize(
    ("provisioner", "expected"),
    [
        ("disks.example.com", "disks.example.com"),
        ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ],
)
def test_an_external_provisioner_is_asked_by_annotations(provisioner: str, expected: str) -> None:
    world = World(wanting("fast"), storage_class("fast", provisioner))
    plan = sync(world, wanting("fast"))
    assert event_of(plan).startswith(
        "Normal ExternalProvisioning Waiting for a volume to be created either by the external "
        f"provisioner '{expected}' or manually by the system administrator."
    )
    after = world.find(wanting("fast"))
    assert after is not None
    assert after.annotations[STORAGE_PROVISIONER] == expected
    assert after.annotations[BETA_STORAGE_PROVISIONER] == expected
    assert sync(world, after).writes == []


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        ([], 'storageclass.storage.k8s.io "fast" not found'),
        ([storage_class("fast", "kubernetes.io/no-provisioner")],
         "no volume plugin matched name: kubernetes.io/no-provisioner"),
    ],
)  # fmt: skip
def test_a_class_without_a_provisioner_is_an_event(classes: list[StorageClass], why: str) -> None:
    plan = sync(World(wanting("fast"), *classes), wanting("fast"))
    assert event_of(plan) == f"Warning ProvisioningFailed {why}"


def test_nothing_is_provisioned_if_that_is_switched_off() -> None:
    options = CONTROLLER.options_type(enable_dynamic_provisioning=False)
    subject = PersistentVolumeBinderController(options)
    claim = wanting(selected="n1")
    plan = subject.reconcile(claim.key, FakeView(claim, LOCAL, NODE))
    assert (plan.writes, plan.events) == ([], [])


# --- the default class (TestRetroactiveStorageClass, 15-1 to 15-6)


def test_a_claim_without_a_class_gets_a_default_class_that_came_later() -> None:
    default = storage_class("fast", metadata={"annotations": {IS_DEFAULT: "true"}})
    world = World(a_claim(), default)
    assert sync(world, a_claim()).events == []
    after = world.find(a_claim())
    assert isinstance(after, PersistentVolumeClaim)
    assert after.spec.storage_class_name == "fast"
    empty = a_claim(storage_class_name="")
    plan = sync(World(empty, default), empty)
    assert [event.reason for event in plan.events] == ["FailedBinding"]


# --- keys


def keys(of: Any, old: KubeObject | None, new: KubeObject | None, *others: KubeObject) -> list[str]:
    return list(of(Change(old, new), FakeView(*others)))


def test_a_claim_wakes_itself_and_the_volumes_that_it_leaves() -> None:
    bound = a_claim("1Gi", "volume", "Bound", COMPLETED)
    half = a_volume("1Gi", "uid", "claim", name="half")
    assert keys(of_claim, None, a_claim()) == ["default/claim"]
    assert keys(of_claim, a_claim(), bound) == ["default/claim", "volume"]
    assert keys(of_claim, bound, bound) == ["default/claim"]
    assert keys(of_claim, bound, None) == ["volume"]
    assert keys(of_claim, a_claim(), None, half, a_volume()) == ["half"]


def test_a_volume_wakes_its_claim_and_those_that_may_take_it() -> None:
    claims = [a_claim(name=f"c{n}", uid=f"c{n}") for n in range(8)]
    by_name = a_claim("1Gi", "volume", name="z", uid="z")
    large = a_claim("5Gi", name="large", uid="large")
    woken = keys(of_volume, None, a_volume(), *claims, by_name, large)
    assert woken == ["volume", "default/z", *(f"default/c{n}" for n in range(5))]
    assert keys(of_volume, a_volume(), a_volume(), *claims) == ["volume"]
    assert keys(of_volume, None, a_volume(phase="Pending"), *claims) == ["volume"]
    waiting = [wanting(name=f"w{n}", uid=f"w{n}") for n in range(8)]
    assert keys(of_volume, None, a_volume(storage_class_name="local"), LOCAL, *waiting) == [
        "volume"
    ]
    mine = a_volume("1Gi", "uid", "claim")
    assert keys(of_volume, None, mine, a_claim()) == ["volume", "default/claim"]
    done = a_claim("1Gi", "volume", "Bound", COMPLETED)
    assert keys(of_volume, mine, mine, done) == ["volume"]
    settled = a_volume("1Gi", "uid", "claim", "Bound")
    assert keys(of_volume, mine, settled, done) == []
    assert keys(of_claim, done, done, settled) == []
    assert set(keys(of_volume, mine, None, done)) == {"default/claim"}


def test_a_class_wakes_its_unbound_claims_and_those_without_a_class() -> None:
    others = (wanting("fast", name="a"), a_claim(name="b"), wanting("slow", name="c"))
    assert keys(of_class, None, storage_class("fast"), *others) == ["default/a", "default/b"]
    assert keys(of_class, storage_class("fast"), None, *others) == []
