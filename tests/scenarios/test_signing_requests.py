"""The certificates of docs/access.md, issued by a whole kcm for a real kubectl."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.scenarios.plane import StartPlane, start_plane
from tests.scenarios.system import KUBECTL, ROOT, needs_kubectl

__all__ = ["start_plane"]

pytestmark = [
    pytest.mark.scenario,
    needs_kubectl,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here"),
]
BLOCKS = [block.text for block in blocks(ROOT / "docs" / "access.md", "sh")]


def find_commands(words: str) -> str:
    """Returns the block of the page that has these words."""
    (text,) = [text for text in BLOCKS if words in text]
    return text


def test_a_user_and_a_machine_get_certificates(start_plane: StartPlane, tmp_path: Path) -> None:
    assert KUBECTL
    plane = start_plane(nodes=0)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(KUBECTL)
    (tmp_path / ".kcm").symlink_to(plane.state_dir)
    env = {**plane.env, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def run(commands: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", commands],
            cwd=tmp_path,
            env=env,
            timeout=60,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    user = run(find_commands("kubectl certificate approve frank"))
    assert "frank" in user
    assert "[dev system:authenticated]" in user
    machine = run(find_commands("--type=bootstrap.kubernetes.io/token"))
    assert "system:bootstrap:" in machine
    assert "Approved,Issued" in machine
