"""Which mounts are in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm.kubelet.files import mounts


def test_mounts_in_a_folder_are_those_of_its_own_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pods"
    (folder / "a b").mkdir(parents=True)
    info = tmp_path / "mountinfo"
    lines = [
        f"{number} 1 0:1 / {path} rw - tmpfs none rw"
        for number, path in enumerate(
            ("/", f"{folder}", f"{folder}/a\\040b", f"{folder}-other", f"{folder}/a\\040b/c")
        )
    ]
    info.write_text("\n".join(lines))
    monkeypatch.setattr(mounts, "_INFO", info)
    assert mounts.list_mounts(folder) == [folder, folder / "a b", folder / "a b" / "c"]
    assert mounts.list_mounts(folder / "a b") == [folder / "a b", folder / "a b" / "c"]
    monkeypatch.setattr(mounts, "_INFO", tmp_path / "missing")
    assert mounts.list_mounts(folder) == []
