"""The folder with the programs that envtest starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kcm import KUBERNETES_VERSION
from kcm.testing.envtest.assets import write_assets


def run(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_programs_answer_what_envtest_asks_before_it_starts_them(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    write_assets(folder)
    assert "\n  --unsafe-no-fsync" in run(folder / "etcd", "--help")
    assert "\n      --secure-port" in run(folder / "kube-apiserver", "--help")
    assert run(folder / "kube-apiserver", "--version") == f"Kubernetes v{KUBERNETES_VERSION}\n"


def test_kubectl_is_the_users_or_says_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_assets(tmp_path / "without")
    done = subprocess.run(
        [tmp_path / "without/kubectl"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 127
    assert "kubectl is not installed" in done.stderr
    own = tmp_path / "kubectl"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    write_assets(tmp_path / "with")
    assert (tmp_path / "with/kubectl").resolve() == own


def test_the_folder_of_assets_may_be_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_assets(tmp_path)
    write_assets(tmp_path)
    assert not (tmp_path / "kubectl").is_symlink()
