"""Pods on disks of the simulated CSI driver, which come and go while things break."""

from __future__ import annotations

import random
import sys
from collections import defaultdict

import psutil

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.api.core_v1.volumes import Volume
from kcm.api.simulated import STORAGE_CLASS
from kcm.api.storage_v1 import VolumeAttachment
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store import DeleteOptions
from kcm.testing.storage_builders import claim
from tests.chaos.cluster import Cluster
from tests.chaos.world import PODS
from tests.new_objects import pod, strip_store_fields

CLAIMS = PersistentVolumeClaim.resource
VOLUMES = PersistentVolume.resource
ATTACHMENTS = VolumeAttachment.resource
NAMES = tuple(f"db-{number}" for number in range(6))  # of a pod, and of its claim
AT_ONCE = DeleteOptions(grace_period_seconds=0)


class AttachmentLog:
    """Follows the watch of VolumeAttachments, and notes each moment with a disk on two nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._position = cluster.store.resource_version()
        self._nodes: dict[str, dict[str, str]] = defaultdict(dict)  # by volume and attachment
        self.doubled: list[str] = []
        self.seen = 0

    def read(self) -> None:
        """Reads what was written since the last call."""
        changes = self._cluster.store.read_changes({ATTACHMENTS: self._position}, 0)
        if changes.gone:  # the server was restarted
            self._list()
            return
        self._position = changes.positions[ATTACHMENTS]
        for entry in changes.entries:
            obj = codec.decode(entry.raw, ATTACHMENTS)
            self.seen += entry.type == "ADDED"
            self._note(obj, deleted=entry.type == "DELETED")

    def _list(self) -> None:
        self._position = self._cluster.store.resource_version()
        self._nodes.clear()
        for obj in self._cluster.store.list(ATTACHMENTS).items:
            self._note(obj, deleted=False)

    def _note(self, obj: KubeObject, *, deleted: bool) -> None:
        assert isinstance(obj, VolumeAttachment)
        volume = obj.spec.source.persistent_volume_name or ""
        nodes = self._nodes[volume]
        nodes[obj.key] = obj.spec.node_name
        if deleted:
            del nodes[obj.key]
        if len(set(nodes.values())) > 1:
            self.doubled.append(f"{volume}: {sorted(nodes.values())}")


class Disks:
    """Simulated nodes, and the pods and claims on them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.log = AttachmentLog(cluster)
        self.simulator: psutil.Popen | None = None
        self.start()

    def start(self) -> None:
        """Starts the simulator, unless it runs."""
        if self.simulator is not None and self.simulator.poll() is None:
            return
        flags = ("--count=3", "--storage-delay=100ms", "--start-after=50ms", "--no-events")
        command = [sys.executable, "-W", "ignore", "-m", "kcm.cli.main", "nodes", *flags]
        self.simulator = self.cluster.spawn("nodes", command)

    def kill(self) -> None:
        """Kills the simulator, in the middle of what its driver does."""
        if self.simulator is not None:
            self.simulator.kill()
            self.simulator.wait()

    # --- what users do

    def stir(self, rng: random.Random, steps: int) -> None:
        """Makes some random changes, and reads the log."""
        for _ in range(steps):
            name = rng.choice(NAMES)
            try:
                self._change(name, rng)
            except (errors.NotFound, errors.Conflict, errors.Temporary):
                continue
            self.log.read()

    def _change(self, name: str, rng: random.Random) -> None:
        store = self.cluster.store
        match rng.randrange(4):
            case 0:
                store.delete(PODS, f"default/{name}", AT_ONCE)
            case 1:
                store.delete(PODS, f"default/{name}", AT_ONCE)
                store.delete(CLAIMS, f"default/{name}")
            case _:
                self.ask_for(name)

    def ask_for(self, name: str) -> None:
        """Creates the claim and the pod that are missing."""
        store = self.cluster.store
        source = PersistentVolumeClaimVolumeSource(claim_name=name)
        user = pod(name, volumes=[Volume(name="data", persistent_volume_claim=source)])
        asked = strip_store_fields(claim(name, storage_class_name=STORAGE_CLASS))
        for obj in (asked, user):
            try:
                store.create(obj)
            except errors.AlreadyExists:
                continue

    def drop_all(self) -> None:
        """Deletes all pods and claims."""
        for name in NAMES:
            for resource, options in ((PODS, AT_ONCE), (CLAIMS, DeleteOptions())):
                try:
                    self.cluster.store.delete(resource, f"default/{name}", options)
                except errors.NotFound:
                    continue

    # --- what has become of it

    def faults(self) -> list[str]:
        """Returns what is wrong; nothing when each pod runs, and each disk is a claim's."""
        self.start()
        self.cluster.start()
        self.log.read()
        store = self.cluster.store
        pods = [obj for obj in store.list(PODS).items if isinstance(obj, Pod)]
        claims = {obj.key: obj for obj in store.list(CLAIMS).items}
        wrong = [f"{p.key}: {p.status.phase}" for p in pods if p.status.phase != "Running"]
        wrong += [f"{p.key} is being deleted" for p in pods if p.deleting]
        for missing in {p.name for p in pods if p.key not in claims}:
            self.ask_for(missing)  # the claim was being deleted when the pod was created
        used = {p.key: p.spec.node_name for p in pods}
        disks: dict[str, str] = {}
        for volume in store.list(VOLUMES).items:
            assert isinstance(volume, PersistentVolume)
            reference = volume.spec.claim_ref
            key = f"{reference.namespace}/{reference.name}" if reference is not None else ""
            owner = claims.get(key)
            if owner is None or reference is None or owner.uid != reference.uid:
                wrong.append(f"{volume.name} is nobody's: {volume.status.phase}")
            elif key in disks.values():
                wrong.append(f"{key} has two disks")
            disks[volume.name] = key
        wrong += self._faults_of_attachments(disks, used)
        return wrong

    def _faults_of_attachments(
        self, disks: dict[str, str], used: dict[str, str | None]
    ) -> list[str]:
        wrong: list[str] = []
        attached: dict[str, str] = {}
        for obj in self.cluster.store.list(ATTACHMENTS).items:
            assert isinstance(obj, VolumeAttachment)
            key = disks.get(obj.spec.source.persistent_volume_name or "", "")
            if used.get(key) != obj.spec.node_name or not obj.status.attached or obj.deleting:
                wrong.append(f"{key or obj.name} is attached to {obj.spec.node_name}")
            attached[key] = obj.spec.node_name
        return wrong + [f"{key} is not attached" for key in used if key not in attached]

    def left(self) -> int:
        """Returns how many volumes, claims and attachments there are."""
        self.start()
        self.cluster.start()
        self.log.read()
        return sum(self.cluster.store.count(kind) for kind in (CLAIMS, VOLUMES, ATTACHMENTS))
