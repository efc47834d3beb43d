"""Pods on simulated nodes wait for their claims as a kubelet's volume manager does.

The messages are those of TestWaitForAttachAndMountError in
pkg/kubelet/volumemanager/volume_manager_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Node, Pod
from kcm.api.core_v1.nodes import AttachedVolume
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.api.core_v1.volumes import Volume
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.simulation.storage.mounts import (
    MOUNT_TIMEOUT,
    POLL,
    PodMounts,
    PodVolume,
    find_volumes,
    has_claims,
    wait_for,
)
from kcm.simulation.storage.seen import CLAIMS, DRIVERS, VOLUMES, SeenStorage
from kcm.testing import builders
from kcm.testing.storage_builders import claim, csi_driver, csi_volume, volume

NAME = "kubernetes.io/csi/disks.example.com^disk"
DISK = PodVolume("data", "default/data", True, NAME)
UNBOUND = PodVolume("data", "default/data", False, "")
FOLDER = PodVolume("data", "default/data", True, "")
DATA = claim(volume_name="disk", status={"phase": "Bound"})


def user() -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    return builders.pod(volumes=[Volume(name="data", persistent_volume_claim=source)])


def seen(*objects: tuple[Any, KubeObject]) -> SeenStorage:
    storage = SeenStorage()
    for kind, obj in objects:
        storage.put(kind, obj.key, codec.encode(obj))
    return storage


def node(*, attached: bool = False, in_use: bool = False) -> Node:
    volumes = [AttachedVolume(name=NAME)] if attached else None
    return builders.node(
        status={"volumes_attached": volumes, "volumes_in_use": [NAME] if in_use else None}
    )


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        ((), UNBOUND),
        (((CLAIMS, claim()),), UNBOUND),
        (((CLAIMS, DATA),), UNBOUND),
        (((CLAIMS, DATA), (VOLUMES, csi_volume())), UNBOUND),  # of no claim
        (((CLAIMS, DATA), (VOLUMES, csi_volume(bound_to=DATA))), DISK),
        (
            (
                (CLAIMS, DATA),
                (VOLUMES, csi_volume(bound_to=DATA)),
                (DRIVERS, csi_driver(attach_required=False)),
            ),
            FOLDER,
        ),
        (((CLAIMS, DATA), (VOLUMES, volume(claim_ref=csi_volume(bound_to=DATA).spec.claim_ref))),
         FOLDER),
    ],
)  # fmt: skip
def test_the_volumes_of_a_pod_are_found_by_its_claims(
    objects: tuple[tuple[Any, KubeObject], ...], found: PodVolume
) -> None:
    assert find_volumes(user(), seen(*objects)) == [found]


def test_a_pod_without_claims_has_none() -> None:
    assert not has_claims(builders.pod(volumes=[Volume(name="v")]))
    assert has_claims(user())


@pytest.mark.parametrize(
    ("volumes", "where", "due"),
    [
        ([], None, None),
        ([FOLDER], node(), None),
        ([UNBOUND], node(), MOUNT_TIMEOUT),
        ([DISK], None, MOUNT_TIMEOUT),
        ([DISK], node(), MOUNT_TIMEOUT),
        ([DISK], node(attached=True), POLL),  # until the node's list of volumes in use is written
        ([DISK], node(in_use=True), MOUNT_TIMEOUT),
        ([DISK], node(attached=True, in_use=True), None),
        ([DISK, UNBOUND], node(attached=True, in_use=True), MOUNT_TIMEOUT),
    ],
)
def test_a_pod_waits_for_what_its_node_does_not_list(
    volumes: list[PodVolume], where: Node | None, due: float | None
) -> None:
    mounts = PodMounts(0.0)
    waiting = wait_for(mounts, volumes, where, 0.0)
    assert (waiting.due if waiting is not None else None) == due
    assert mounts.mounted == (due is None)


def test_a_pod_says_every_two_minutes_that_it_waits() -> None:
    mounts, told = PodMounts(0.0), []
    other = PodVolume("logs", "default/logs", False, "")
    for now in (0.0, 100.0, 123.0, 124.0, 246.0):
        waiting = wait_for(mounts, [DISK, other], node(), now)
        assert waiting is not None
        told += [(now, event.message) for event in waiting.events]
    text = (
        "Unable to attach or mount volumes: unmounted volumes=[data logs], unattached "
        "volumes=[data], failed to process volumes=[logs]: context deadline exceeded"
    )
    assert told == [(123.0, text), (246.0, text)]
