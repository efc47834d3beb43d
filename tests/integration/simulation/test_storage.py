"""The simulated CSI driver, and pods on simulated nodes that wait for its volumes.

What the controllers of storage do is done here by their own syncs, one after the other.
"""

from __future__ import annotations

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Node, PersistentVolume, PersistentVolumeClaim
from kcm.api.scheme import BUILT_IN
from kcm.api.simulated import ATTACHER_FINALIZER, DRIVER, STORAGE_CLASS
from kcm.api.storage_v1 import (
    CSINode,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from kcm.api.volumes.attachments import unique_volume_name
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.controllers.volumes.attachdetach import AttachDetachController
from kcm.controllers.volumes.persistentvolumebinder import PersistentVolumeBinderController
from kcm.controllers.volumes.pvcprotection import PVCProtectionController
from kcm.controllers.volumes.pvprotection import PVProtectionController
from kcm.reconcile.cloudprovider.sim.records import Script
from kcm.reconcile.contract import Controller
from kcm.reconcile.executor import PlanExecutor
from kcm.simulation import commands
from kcm.simulation.commands import NodeCommand
from kcm.simulation.context import storage_scripts
from kcm.store import DeleteOptions
from kcm.testing.storage_builders import claim
from kcm.testing.views import FakeView
from tests.integration.simulation.conftest import NODES, World

CLAIMS = PersistentVolumeClaim.resource
VOLUMES = PersistentVolume.resource
ATTACHMENTS = VolumeAttachment.resource
PROVISIONER = {"volume.kubernetes.io/storage-provisioner": DRIVER}
KINDS = (
    *("pods", "nodes", "persistentvolumeclaims", "persistentvolumes"),
    *("storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io"),
    "csidrivers.storage.k8s.io",
)

_BINDER = PersistentVolumeBinderController()
CONTROLLERS: tuple[tuple[str, tuple[Controller, ...]], ...] = (
    ("persistentvolumes", (_BINDER, PVProtectionController())),
    ("persistentvolumeclaims", (_BINDER, PVCProtectionController())),
    ("persistentvolumes", (AttachDetachController(),)),
)


class Cluster:
    """The simulator's world, with the controllers of storage."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.store = world.store
        self.scripts = storage_scripts(world.store)
        self.memory: dict[str, dict[str, str]] = {}
        self.events: list[tuple[str, str]] = []
        self.synced = 0

    def all(self, name: str) -> list[KubeObject]:
        return list(self.store.list(BUILT_IN.by_name(name)).items)

    def sync(self) -> None:
        """Has the controllers of storage sync everything once, if anything was written."""
        if self.store.resource_version() == self.synced:
            return
        for name, controllers in CONTROLLERS:
            for obj in self.all(name):
                for controller in controllers:
                    self._sync(controller, obj.key)
        self.synced = self.store.resource_version()

    def _sync(self, controller: Controller, key: str) -> None:
        objects = [obj for name in KINDS for obj in self.all(name)]
        memory = self.memory.get(key, {})
        view = FakeView(*objects, now=self.world.clock.now(), memory=memory)
        plan = controller.reconcile(key, view)
        while True:
            outcome = PlanExecutor(self.store).execute(plan, None)
            self.events += [(event.reason, event.message) for event in plan.events]
            if plan.state is not None:
                self.memory[key] = dict(plan.state)
            if plan.plan_after is None:
                return
            plan = plan.plan_after(outcome)

    def go(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.5)):
            self.sync()
            self.world.go(0.5)
        self.sync()

    def claim(self, name: str = "data") -> PersistentVolumeClaim:
        subject = claim(
            name, storage_class_name=STORAGE_CLASS, metadata={"annotations": PROVISIONER}
        )
        fresh = subject.with_metadata(uid=None, resource_version=None, creation_timestamp=None)
        return self.store.create(fresh)

    def pod(self, name: str = "web", node: str = "node-1", of: str = "data") -> None:
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": of}}]
        self.world.pod(name, node, volumes=volumes)

    def volume(self) -> PersistentVolume:
        (volume,) = self.all("persistentvolumes")
        assert isinstance(volume, PersistentVolume)
        return volume

    def attachments(self) -> dict[str, str]:
        """Returns by node whether the volume is attached, or what is in its way."""
        found: dict[str, str] = {}
        for obj in self.all("volumeattachments.storage.k8s.io"):
            assert isinstance(obj, VolumeAttachment)
            status = obj.status
            error = status.attach_error or status.detach_error
            word = "leaving" if obj.deleting else "attached" if status.attached else "waits"
            found[obj.spec.node_name] = (error.message or "") if error is not None else word
        return found


@pytest.fixture
def cluster(world: World) -> Cluster:
    world.go()
    return Cluster(world)


def test_nodes_say_what_driver_they_have_and_the_cluster_has_a_class(cluster: Cluster) -> None:
    (driver,) = cluster.all("csidrivers.storage.k8s.io")
    assert driver.name == DRIVER
    assert [c.name for c in cluster.all("storageclasses.storage.k8s.io")] == [STORAGE_CLASS]
    nodes = cluster.all("csinodes.storage.k8s.io")
    assert [node.name for node in nodes] == ["node-1", "node-2", "node-3"]
    (first, *_) = nodes
    assert isinstance(first, CSINode)
    assert first.spec.drivers[0].allocatable is not None
    assert first.spec.drivers[0].allocatable.count == 16
    assert (first.metadata.owner_references or [])[0].uid == cluster.world.node("node-1").uid


def test_a_volume_lives_with_its_claim_and_its_pod(cluster: Cluster) -> None:
    cluster.claim()
    cluster.pod()
    cluster.go(4)
    volume = cluster.volume()
    assert volume.name == f"pvc-{cluster.store.get(CLAIMS, 'default/data').uid}"
    assert cluster.attachments() == {"node-1": "attached"}
    assert cluster.world.list_pods() == {"web": "1/1 Running"}
    status = cluster.world.node("node-1").status
    assert status.volumes_in_use == [unique_volume_name(volume)]
    assert [v.name for v in status.volumes_attached or ()] == [unique_volume_name(volume)]

    cluster.world.delete("web")
    cluster.go(5)
    assert cluster.attachments() == {}
    status = cluster.world.node("node-1").status
    assert (status.volumes_in_use, status.volumes_attached) == (None, None)

    cluster.store.delete(CLAIMS, "default/data", DeleteOptions())
    cluster.go(3)
    assert cluster.all("persistentvolumes") == []


def test_a_pod_waits_until_its_volume_is_attached_and_says_so(cluster: Cluster) -> None:
    cluster.scripts.add(Script(call="attach", delay=3600), None)
    cluster.claim()
    cluster.pod()
    cluster.go(3)
    assert cluster.world.list_pods() == {"web": "0/1 ContainerCreating"}
    cluster.world.go(15)
    assert cluster.attachments() == {
        "node-1": "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    }
    cluster.world.go(110, step=5)
    assert (
        "node-1",
        "FailedMount",
        "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[data], "
        "failed to process volumes=[]: context deadline exceeded",
    ) in cluster.world.recorded.events
    cluster.scripts.clear()
    cluster.world.go(100, step=5)
    cluster.go(4)
    assert cluster.attachments() == {"node-1": "attached"}
    assert cluster.world.list_pods() == {"web": "1/1 Running"}


def test_a_call_that_fails_is_made_again(cluster: Cluster) -> None:
    cluster.scripts.add(Script(call="attach", error="disk is broken"), 2)
    cluster.scripts.add(Script(call="create", error="no space"), 1)
    cluster.claim()
    cluster.pod()
    cluster.go(2)
    assert "ProvisioningFailed" in [reason for _, reason, _ in cluster.world.recorded.events]
    cluster.go(1)
    assert cluster.attachments() == {"node-1": "rpc error: code = Internal desc = disk is broken"}
    assert ("FailedAttachVolume", 'AttachVolume.Attach failed for volume "'
            f'{cluster.volume().name}" : rpc error: code = Internal desc = disk is broken'
            ) in cluster.events  # fmt: skip
    cluster.go(6)
    assert cluster.attachments() == {"node-1": "attached"}


def test_a_call_goes_on_although_nobody_waits_for_it(cluster: Cluster) -> None:
    cluster.scripts.add(Script(call="attach", delay=17), None)
    cluster.claim()
    cluster.pod()
    cluster.go(16.5)
    assert cluster.attachments()["node-1"].startswith("rpc error: code = DeadlineExceeded")
    cluster.go(3)
    assert cluster.attachments() == {"node-1": "attached"}


def test_a_restart_in_the_middle_leaves_one_volume(cluster: Cluster) -> None:
    cluster.claim()
    cluster.pod()
    for _ in range(12):  # at each stage of the way
        cluster.go(0.5)
        cluster.world.restart()
    cluster.go(2)
    cluster.volume()
    assert cluster.attachments() == {"node-1": "attached"}
    assert ATTACHER_FINALIZER in (cluster.volume().metadata.finalizers or ())
    assert cluster.world.list_pods() == {"web": "1/1 Running"}


def test_a_restart_does_not_take_back_what_is_in_use(cluster: Cluster) -> None:
    cluster.claim()
    cluster.pod()
    cluster.go(4)
    position = cluster.store.resource_version()
    cluster.world.restart()
    cluster.world.clock.step(400)  # so that statuses are due
    cluster.world.go(1)
    changes = cluster.store.read_changes({NODES: position}, 0)
    written = [codec.decode(e.raw, NODES) for e in changes.entries if e.key == "node-1"]
    used = [node.status.volumes_in_use for node in written if isinstance(node, Node)]
    assert used == [[unique_volume_name(cluster.volume())]] * len(used)
    assert used


def test_a_silent_node_keeps_its_volume_until_it_is_out_of_service(cluster: Cluster) -> None:
    cluster.claim()
    cluster.pod()
    cluster.go(4)
    commands.send(cluster.store, {"node-1": NodeCommand("stopped", cluster.world.clock.now())})
    cluster.world.go(1)
    cluster.world.delete("web", grace_period_seconds=0)
    cluster.pod("web", "node-2")
    cluster.go(3)
    assert cluster.attachments() == {"node-1": "attached"}
    assert cluster.world.list_pods() == {"web": "0/1 ContainerCreating"}
    name = cluster.volume().name
    text = (
        f'Multi-Attach error for volume "{name}" Volume is already exclusively attached to one '
        "node and can't be attached to another"
    )
    assert cluster.events.count(("FailedAttachVolume", text)) == 1
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    cluster.store.patch(Node.resource, "node-1", {"spec": {"taints": [taint]}})
    cluster.go(4)
    assert cluster.attachments() == {"node-2": "attached"}
    assert cluster.world.list_pods() == {"web": "1/1 Running"}


def test_a_node_takes_no_more_volumes_than_its_limit(cluster: Cluster) -> None:
    cluster.world.restart(volume_limit=1)
    for name in ("a", "b"):
        cluster.claim(name)
        cluster.pod(name, of=name)
    cluster.go(5)
    pods = cluster.world.list_pods()
    assert sorted(pods.values()) == ["0/1 ContainerCreating", "1/1 Running"]
    assert "ResourceExhausted" in str(cluster.events)


def test_a_volume_that_is_not_there_is_not_attached(cluster: Cluster) -> None:
    source = VolumeAttachmentSource(persistent_volume_name="no-volume")
    spec = VolumeAttachmentSpec(attacher=DRIVER, node_name="node-1", source=source)
    cluster.store.create(VolumeAttachment(metadata=ObjectMeta(name="stray"), spec=spec))
    cluster.world.go(2)
    assert cluster.attachments() == {"node-1": 'persistentvolume "no-volume" not found'}
    cluster.store.delete(ATTACHMENTS, "stray")
    cluster.world.go(2)
    assert cluster.attachments() == {}


def test_a_volume_that_is_being_deleted_is_not_attached(cluster: Cluster) -> None:
    cluster.claim()
    cluster.go(2)
    name = cluster.volume().name
    cluster.store.delete(VOLUMES, name)
    cluster.pod()
    cluster.go(3)
    assert cluster.attachments() == {"node-1": f'PersistentVolume "{name}" is marked for deletion'}


def test_a_claim_waits_for_its_class(cluster: Cluster) -> None:
    (offered,) = cluster.all("storageclasses.storage.k8s.io")
    cluster.store.delete(offered.resource, offered.key)
    cluster.claim()
    cluster.world.go(2)
    text = f'storageclass.storage.k8s.io "{STORAGE_CLASS}" not found'
    (event,) = {e for _, r, e in cluster.world.recorded.events if r == "ProvisioningFailed"}
    assert event.endswith(text)
    cluster.world.restart()
    cluster.go(2)
    assert cluster.volume().status.phase == "Bound"


def test_a_pod_that_is_deleted_while_it_waits_ends(cluster: Cluster) -> None:
    cluster.scripts.add(Script(call="create", delay=3600), None)
    cluster.claim()
    cluster.pod()
    cluster.go(2)
    cluster.world.delete("web")
    cluster.go(2)
    assert cluster.world.list_pods() == {}
