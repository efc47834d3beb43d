"""Volumes that are given to the fsGroup of their pod."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kcm.api.core_v1 import Pod
from kcm.kubelet.environment.payloads import File, give_files
from kcm.kubelet.volumes.ownership import give_volume

GROUP = 3000
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other groups")


def pod_of(group: int | None = GROUP, policy: str | None = None) -> Pod:
    context = {"fsGroup": group, "fsGroupChangePolicy": policy}
    return Pod.model_validate({"metadata": {"name": "p"}, "spec": {"securityContext": context}})


def look(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_gid, stat.S_IMODE(status.st_mode)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    volume = tmp_path / "volume"
    (volume / "inner").mkdir(parents=True)
    (volume / "inner" / "file").write_text("x")
    (volume / "inner" / "file").chmod(0o600)
    (tmp_path / "outside").write_text("x")
    (tmp_path / "outside").chmod(0o600)
    (volume / "link").symlink_to(tmp_path / "outside")
    volume.chmod(0o755)
    (volume / "inner").chmod(0o700)
    return volume


@needs_root
def test_all_of_a_volume_is_the_groups_and_nothing_else(volume: Path) -> None:
    give_volume(volume, pod_of())
    assert look(volume) == (GROUP, 0o2775)
    assert look(volume / "inner") == (GROUP, 0o2770)
    assert look(volume / "inner" / "file") == (GROUP, 0o660)
    assert (volume / "link").lstat().st_gid == GROUP
    assert look(volume.parent / "outside") == (0, 0o600)


@needs_root
@pytest.mark.parametrize(("policy", "mode"), [("OnRootMismatch", 0o600), ("Always", 0o660)])
def test_a_volume_that_has_the_group_is_left_alone_where_the_pod_says_so(
    volume: Path, policy: str, mode: int
) -> None:
    give_volume(volume, pod_of())
    file = volume / "inner" / "file"
    file.chmod(0o600)
    give_volume(volume, pod_of(policy=policy))
    assert look(file)[1] == mode
    volume.chmod(0o755)  # without the set-group-id bit, it is not given yet
    give_volume(volume, pod_of(policy=policy))
    assert look(file)[1] == 0o660


def test_without_a_group_nothing_changes(volume: Path) -> None:
    give_volume(volume, pod_of(None))
    assert look(volume / "inner" / "file")[1] == 0o600


def test_files_of_the_kubelet_are_readable_for_the_group() -> None:
    payload = {"a": File(b"x", 0o400), "b": File(b"y", 0o644)}
    given = give_files(payload, GROUP)
    assert {path: (file.mode, file.group) for path, file in given.items()} == {
        "a": (0o440, GROUP), "b": (0o644, GROUP),
    }  # fmt: skip
    assert give_files(payload, None) == payload
