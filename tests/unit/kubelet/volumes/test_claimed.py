"""Claims of pods lead to their PersistentVolumes, or say why not.

After TestCreateVolumeSpec_* in
pkg/kubelet/volumemanager/populator/desired_state_of_world_populator_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import Container, PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.core_v1.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kcm.api.core_v1.containers import VolumeMount
from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.persistent_volumes import (
    CSIPersistentVolumeSource,
    LocalVolumeSource,
    VolumeNodeAffinity,
)
from kcm.api.core_v1.volume_sources import HostPathVolumeSource, PersistentVolumeClaimVolumeSource
from kcm.api.core_v1.volumes import EphemeralVolumeSource, PersistentVolumeClaimTemplate, Volume
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.variables import PodLocation
from kcm.kubelet.volumes.claimed import claimed_volume
from kcm.kubelet.volumes.volumes import Volumes
from kcm.testing import builders, storage_builders
from kcm.testing.views import NOW
from tests.lookups import FakeLookups

HOST = "kubernetes.io/hostname"
LABELS = {HOST: "n1"}
CLAIM = Volume(
    name="v", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data")
)


def claim(phase: str = "Bound", **fields: Any) -> PersistentVolumeClaim:
    fields = {"volume_name": "disk"} | fields
    return storage_builders.claim("data", status={"phase": phase}, **fields)


def disk(uid: str | None = None, **fields: Any) -> PersistentVolume:
    reference = ObjectReference(
        namespace="default", name="data", uid=claim().uid if uid is None else uid
    )
    return storage_builders.volume("disk", phase="Bound", claim_ref=reference, **fields)


def on(hostname: str) -> VolumeNodeAffinity:
    wanted = NodeSelectorRequirement(key=HOST, operator="In", values=[hostname])
    terms = [NodeSelectorTerm(match_expressions=[wanted])]
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def user(volume: Volume = CLAIM, **mount: Any) -> Pod:
    mounted = VolumeMount(name="v", mount_path="/data", **mount)
    main = Container(name="c", volume_mounts=[mounted])
    return builders.pod("web", volumes=[volume], containers=[main])


def find(*objects: Any, volume: Volume = CLAIM, mounted: bool = False) -> PersistentVolume:
    claims = tuple(obj for obj in objects if isinstance(obj, PersistentVolumeClaim))
    volumes = tuple(obj for obj in objects if isinstance(obj, PersistentVolume))
    lookups = FakeLookups(claims=claims, volumes=volumes)
    return claimed_volume(user(volume), volume, lookups, LABELS, is_mounted=mounted)


def test_a_bound_claim_leads_to_its_volume() -> None:
    assert find(claim(), disk()).name == "disk"
    assert find(claim(), disk(node_affinity=on("n1"))).name == "disk"


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], 'PVC default/data: failed to fetch PVC .* persistentvolumeclaims "data" not found'),
        ([claim("Pending")], "PVC is not bound"),
        ([claim(volume_name=None)], "PVC is not bound"),
        ([claim()], 'failed to fetch PV disk from API server: persistentvolumes "disk" not found'),
        ([claim(), disk("other")], 'found PV object "disk" with a pv.Spec.ClaimRef.UID "other"'),
        ([claim(), storage_builders.volume("disk")], 'with a pv.Spec.ClaimRef.UID ""'),
        ([claim(), disk(node_affinity=on("n2"))], "NodeAffinity check failed for volume"),
    ],
)
def test_what_is_missing_is_named(objects: list[Any], words: str) -> None:
    with pytest.raises(ContainerConfigError, match=words):
        find(*objects)


def test_a_claim_that_is_being_deleted_stays_with_pods_that_have_it() -> None:
    deleted = claim().with_metadata(deletion_timestamp=NOW)
    with pytest.raises(ContainerConfigError, match="PVC is being deleted"):
        find(deleted, disk())
    assert find(deleted, disk(), mounted=True).name == "disk"


def test_an_ephemeral_volume_takes_only_the_pods_own_claim() -> None:
    source = EphemeralVolumeSource(volume_claim_template=PersistentVolumeClaimTemplate())
    foreign = claim().with_metadata(name="web-v")
    with pytest.raises(ContainerConfigError, match="pod is not owner"):
        find(foreign, disk(), volume=Volume(name="v", ephemeral=source))


# --- mounts


def test_a_path_of_the_host_is_mounted_where_it_is_allowed(tmp_path: Path) -> None:
    place = tmp_path / "allowed" / "data"
    place.mkdir(parents=True)
    for source in (
        {"host_path": HostPathVolumeSource(path=str(place))},
        {"host_path": None, "local": LocalVolumeSource(path=str(place))},
    ):
        lookups = FakeLookups(claims=(claim(),), volumes=(disk(**source),))
        allowed = Volumes(tmp_path / "pods", (tmp_path / "allowed",))
        found = allowed.set_up(user(), lookups, PodLocation())
        assert found.paths["v"] == place
        with pytest.raises(ContainerConfigError, match="not allowed on this node"):
            Volumes(tmp_path / "pods").set_up(user(), lookups, PodLocation())


def test_a_claim_for_reading_is_mounted_for_reading(tmp_path: Path) -> None:
    volumes = Volumes(tmp_path / "pods", (tmp_path,))
    for claim_reads, mount_reads in ((False, False), (True, False), (False, True)):
        source = PersistentVolumeClaimVolumeSource(claim_name="data", read_only=claim_reads)
        subject = user(Volume(name="v", persistent_volume_claim=source), read_only=mount_reads)
        place = disk(host_path=HostPathVolumeSource(path=str(tmp_path)))
        lookups = FakeLookups(claims=(claim(),), volumes=(place,))
        found = volumes.set_up(subject, lookups, PodLocation())
        (mount,) = volumes.mounts(subject, subject.spec.containers[0], found, {})
        assert mount.read_only == (claim_reads or mount_reads)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"volume_mode": "Block"}, "is a block device: not supported"),
        ({"host_path": None,
          "csi": CSIPersistentVolumeSource(driver="a.b", volume_handle="h")},
         "a.b is not supported on this node"),
    ],
)  # fmt: skip
def test_volumes_of_others_are_not_mounted(
    tmp_path: Path, source: dict[str, Any], words: str
) -> None:
    lookups = FakeLookups(claims=(claim(),), volumes=(disk(**source),))
    with pytest.raises(ContainerConfigError, match=words):
        Volumes(tmp_path).set_up(user(), lookups, PodLocation())
