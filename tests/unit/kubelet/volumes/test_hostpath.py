"""The host paths that a pod may use."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kcm.errors import ContainerConfigError
from kcm.kubelet.volumes.hostpath import host_path


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    folder = tmp_path / "allowed"
    (folder / "folder").mkdir(parents=True)
    (folder / "file").touch()
    (folder / "out").symlink_to(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("name", "kind", "ok"),
    [
        ("folder", "", True),
        ("missing", "", True),
        ("folder", "Directory", True),
        ("file", "Directory", False),
        ("missing", "Directory", False),
        ("missing/deep", "DirectoryOrCreate", True),
        ("file", "DirectoryOrCreate", False),
        ("file", "File", True),
        ("folder", "File", False),
        ("missing", "FileOrCreate", True),
        ("file", "Socket", False),
        ("file", "CharDevice", False),
        ("file", "BlockDevice", False),
        ("file", "Nonsense", False),
        ("../elsewhere", "", False),
        ("out/elsewhere", "", False),
    ],
)
def test_a_path_is_what_its_type_says_and_below_an_allowed_one(
    allowed: Path, name: str, kind: str, ok: bool
) -> None:
    path = f"{allowed}/{name}"
    if ok:
        assert host_path(path, kind, [allowed]) == (Path(path), allowed)
        assert kind == "" or Path(path).exists()
    else:
        with pytest.raises(ContainerConfigError):
            host_path(path, kind, [allowed])


def test_nothing_is_allowed_unless_it_is_listed(allowed: Path) -> None:
    with pytest.raises(ContainerConfigError, match="--allowed-host-paths"):
        host_path(str(allowed), "", [])
    with pytest.raises(ContainerConfigError, match="not allowed"):
        host_path("folder", "", [Path("/")])


def test_devices_and_sockets_are_told_from_files(allowed: Path) -> None:
    assert host_path("/dev/null", "CharDevice", [Path("/dev")])[0] == Path("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        path = allowed / "s"
        server.bind(str(path))
        assert host_path(str(path), "Socket", [allowed])[0] == path
