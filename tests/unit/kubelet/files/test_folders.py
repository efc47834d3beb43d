from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kcm.kubelet.files.folders import remove_empty, remove_logs, remove_tree


def fill(folder: Path, files: int = 20) -> Path:
    for number in range(files):
        below = folder / f"d{number}" / "e"
        below.mkdir(parents=True)
        (below / "file").write_text("x")
    return folder


def test_two_may_remove_the_same_folder_at_a_time(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        for number in range(30):
            folder = fill(tmp_path / str(number))
            list(pool.map(remove_tree, [folder] * 4))
            assert not folder.exists()


@pytest.mark.parametrize("function", ["unlink", "rmdir", "scandir"])
def test_what_goes_between_a_look_and_its_removal_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    folder = fill(tmp_path / "a", files=1)
    real: Callable[..., object] = getattr(os, function)
    rmtree = shutil.rmtree
    meanwhile = [folder]

    def late(*args: object, **options: object) -> object:
        if meanwhile:
            rmtree(meanwhile.pop(), ignore_errors=True)
        return real(*args, **options)

    monkeypatch.setattr(os, function, late)
    remove_tree(folder)
    assert not folder.exists()


def test_what_cannot_be_removed_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill(tmp_path / "a", files=1)

    def refuse(path: str, **_: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)

    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(OSError, match="busy") as raised:
        remove_tree(folder)
    assert raised.value.errno == errno.EBUSY


def test_a_folder_that_is_not_there_is_as_good_as_removed(tmp_path: Path) -> None:
    remove_tree(tmp_path / "never")
    remove_logs(str(tmp_path / "never" / "0.log"))


def test_closed_folders_inside_each_other_are_removed(tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", files=1)
    for closed in (folder / "d0" / "e", folder / "d0", folder):
        closed.chmod(0o000)
    remove_tree(folder)
    assert not folder.exists()


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    kept = fill(tmp_path / "kept", files=1)
    link = tmp_path / "link"
    link.symlink_to(kept)
    remove_tree(link)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(kept)
    remove_tree(tmp_path / "folder")
    assert not link.is_symlink()
    assert (kept / "d0" / "e" / "file").exists()


def test_a_logs_rotated_files_go_with_it_and_its_neighbours_stay(tmp_path: Path) -> None:
    for name in ("0.log", "0.log.20260102-030405", "1.log"):
        (tmp_path / "logs" / "main").mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / "main" / name).touch()
    remove_logs(str(tmp_path / "logs" / "main" / "0.log"))
    assert [file.name for file in (tmp_path / "logs" / "main").iterdir()] == ["1.log"]
    remove_logs(str(tmp_path / "logs" / "main" / "1.log"))
    assert not [*(tmp_path / "logs" / "main").iterdir()]  # it stays for the next container


def test_folders_with_nothing_but_empty_ones_are_removed(tmp_path: Path) -> None:
    for name in ("main", "side"):
        (tmp_path / "logs" / name).mkdir(parents=True)
    (tmp_path / "logs" / "side" / "0.log").touch()
    remove_empty(tmp_path / "logs")
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["side"]
    (tmp_path / "logs" / "side" / "0.log").unlink()
    remove_empty(tmp_path / "logs")
    assert not (tmp_path / "logs").exists()
    remove_empty(tmp_path / "logs")


def test_folders_are_removed_however_deep_they_are(tmp_path: Path) -> None:
    top = os.open(tmp_path, os.O_RDONLY)
    above = top
    for _ in range(3000):
        os.mkdir("d", dir_fd=above)
        below = os.open("d", os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)
    remove_tree(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []
