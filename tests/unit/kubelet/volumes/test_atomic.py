"""Volumes whose files all change at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.payloads import File
from kcm.kubelet.volumes.atomic import write


def read_files(volume: Path) -> dict[str, str]:
    """Returns the files that a container sees, by path."""
    contents: dict[str, str] = {}
    for folder, folders, names in os.walk(volume, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith("..")]
        for name in names:
            path = Path(folder) / name
            contents[str(path.relative_to(volume))] = path.read_text()
    return contents


def files(**texts: str) -> dict[str, File]:
    return {name.replace("__", "/"): File(text.encode()) for name, text in texts.items()}


def test_files_are_seen_through_one_link(tmp_path: Path) -> None:
    assert write(tmp_path, files(a="1", sub__b="2", sub__deep__c="3"))
    assert read_files(tmp_path) == {"a": "1", "sub/b": "2", "sub/deep/c": "3"}
    assert os.readlink(tmp_path / "a") == "..data/a"
    assert os.readlink(tmp_path / "sub") == "..data/sub"
    assert os.readlink(tmp_path / "..data").startswith("..20")


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    write(tmp_path, files(a="1"))
    link = os.readlink(tmp_path / "..data")
    assert not write(tmp_path, files(a="1"))
    assert os.readlink(tmp_path / "..data") == link


def test_a_change_replaces_the_folder_behind_the_link(tmp_path: Path) -> None:
    write(tmp_path, files(a="1", gone="x", sub__b="2"))
    old = tmp_path / "..data"
    opened = os.open(old, os.O_RDONLY)
    assert write(tmp_path, files(a="2", new="y"))
    os.close(opened)
    assert read_files(tmp_path) == {"a": "2", "new": "y"}
    assert len(list(tmp_path.iterdir())) == 4  # a, new, ..data and the folder behind it


def test_a_new_mode_is_a_change(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1", 0o644)})
    assert write(tmp_path, {"a": File(b"1", 0o400)})
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o400


def test_what_an_interrupted_write_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "..2020_01_01_00_00_00.half").mkdir()
    (tmp_path / "..data_tmp").symlink_to("..2020_01_01_00_00_00.half")
    write(tmp_path, files(a="1"))
    assert read_files(tmp_path) == {"a": "1"}
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("path", ["", "/a", "..", "../a", "a/../../b", "..a", "x" * 256, "."])
def test_paths_stay_inside(tmp_path: Path, path: str) -> None:
    with pytest.raises(ContainerConfigError):
        write(tmp_path, {path: File(b"")})
    assert list(tmp_path.iterdir()) == []
