"""How large a volume in memory may be, and what of a mount is refused. Cases of
TestCalculateEmptyDirMemorySize of pkg/volume/emptydir, Kubernetes 1.36.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.volume_sources import EmptyDirVolumeSource
from kcm.apimachinery.quantity import Quantity
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.variables import PodLocation
from kcm.kubelet.files import mounts
from kcm.kubelet.volumes.mounter import VolumeMounter, check_propagation

NODE = PodLocation(allocatable={"memory": Quantity("1Gi")})


def pod_with(*limits: str | None) -> Pod:
    containers: list[dict[str, Any]] = [
        {"name": f"c{n}", "resources": {"limits": {"memory": limit}} if limit else {}}
        for n, limit in enumerate(limits)
    ]
    return Pod.model_validate({"spec": {"containers": containers}})


@pytest.mark.parametrize(
    ("limits", "size_limit", "wanted"),
    [
        ((None,), None, 1024),
        ((None,), "100Mi", 100),
        (("200Mi",), None, 200),
        (("200Mi", "50Mi"), None, 250),
        (("200Mi", None), None, 1024),  # one of the containers may take all there is
        (("200Mi",), "300Mi", 200),
        (("200Mi",), "100Mi", 100),
        (("2Gi",), "3Gi", 1024),
        ((None,), "0", 1024),
    ],
)
def test_memory_is_what_volume_pod_and_node_allow(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    limits: tuple[str | None, ...],
    size_limit: str | None,
    wanted: int,
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(mounts, "mount_memory", lambda _, size: sizes.append(size))
    source = EmptyDirVolumeSource.model_validate({"medium": "Memory", "sizeLimit": size_limit})
    VolumeMounter().mount_memory(tmp_path, pod_with(*limits), source, NODE)
    assert sizes == [wanted * 1024**2]


def test_what_is_mounted_already_is_not_mounted_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(mounts, "mount_memory", lambda _, size: sizes.append(size))
    monkeypatch.setattr(mounts, "list_mounts", lambda folder: [folder.resolve()])
    source = EmptyDirVolumeSource.model_validate({"medium": "Memory"})
    VolumeMounter().mount_memory(tmp_path, pod_with(None), source, NODE)
    assert sizes == []


def test_propagation_is_passed_on_and_recursive_reading_is_refused() -> None:
    assert [check_propagation(each, None) for each in (None, "None", "Bidirectional")] == [
        "", "", "Bidirectional",
    ]  # fmt: skip
    assert check_propagation(None, "IfPossible") == ""
    with pytest.raises(ContainerConfigError, match="not supported on this node"):
        check_propagation(None, "Enabled")
