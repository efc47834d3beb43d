"""Volumes, nodes and pods for tests of the attach-detach controller."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kcm.api.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod, Taint
from kcm.api.core_v1.nodes import AttachedVolume
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.api.core_v1.volumes import Volume
from kcm.api.storage_v1 import VolumeAttachment
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.volumes.attachdetach import AttachDetachController
from kcm.controllers.volumes.attachdetach.controller import AttachDetachOptions
from kcm.helpers.volumes.attachments import MANAGED, OUT_OF_SERVICE
from kcm.reconcile.plan import AnyPlan, Plan
from kcm.testing import builders
from kcm.testing.builders import pod
from kcm.testing.storage_builders import claim, csi_volume, volume_attachment
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World

BOUND = {"phase": "Bound"}
DATA = claim(volume_name="disk", status=BOUND)
DISK = csi_volume(bound_to=DATA)
NAME = "kubernetes.io/csi/disks.example.com^disk"
FINALIZER = "external-attacher/disks-example-com"
TAINT = Taint(key=OUT_OF_SERVICE, value="nodeshutdown", effect="NoExecute")
FORCED = "attach_detach_controller_attachdetach_controller_forced_detaches"


def node(
    name: str = "n1",
    *,
    attached: bool = False,
    in_use: bool = False,
    annotations: dict[str, str] | None = None,
    **fields: Any,
) -> Node:
    status = {
        "volumes_attached": [AttachedVolume(name=NAME)] if attached else None,
        "volumes_in_use": [NAME] if in_use else None,
    }
    notes = {MANAGED: "true"} if annotations is None else annotations
    return builders.node(name, metadata={"annotations": notes}, status=status, **fields)


def user(name: str = "web-1", on: str = "n1", of: str = "data", **fields: Any) -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name=of)
    volumes = [Volume(name="v", persistent_volume_claim=source)]
    return pod(name, node=on, volumes=volumes, **fields)


def shared() -> tuple[PersistentVolumeClaim, PersistentVolume]:
    modes = ["ReadWriteMany"]
    many = claim(volume_name="disk", status=BOUND, access_modes=modes)
    return many, csi_volume(bound_to=many, access_modes=modes)


def attachment(on: str = "n1", **fields: Any) -> VolumeAttachment:
    return volume_attachment(DISK, on, metadata={"finalizers": [FINALIZER]}, **fields)


def sync(
    *objects: KubeObject,
    memory: dict[str, str] | None = None,
    now: datetime = NOW,
    options: AttachDetachOptions | None = None,
    key: str = "disk",
) -> Plan:
    controller = AttachDetachController(options)
    view = FakeView(*objects, now=now, memory=memory, controller=controller)
    return controller.reconcile(key, view)


def settle(world: World, plan: AnyPlan) -> tuple[list[str], list[str]]:
    """Carries out the plan; returns the nodes with attachments, those being detached starred, and
    the nodes that list the volume.
    """
    world.carry_out(plan)
    attached = [
        f"{a.spec.node_name}{'*' * a.deleting}"
        for a in world.of(VolumeAttachment)
        if isinstance(a, VolumeAttachment)
    ]
    listing = [
        n.name
        for n in world.of(Node)
        if isinstance(n, Node)
        if NAME in [volume.name for volume in n.status.volumes_attached or ()]
    ]
    return sorted(attached), sorted(listing)


def run(*objects: KubeObject, **fields: Any) -> tuple[list[str], list[str]]:
    return settle(World(*objects), sync(*objects, **fields))


def events(plan: Plan) -> list[tuple[str, str, str]]:
    return [(event.about.name, event.reason, event.message) for event in plan.events]
