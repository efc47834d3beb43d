"""The certificates of docs/access.md, issued by a whole kcm for a real kubectl."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.scenarios.system import ROOT, System, system

__all__ = ["system"]

KUBECTL = Path(os.environ.get("KCM_KUBECTL_DIR", "/nowhere")) / "kubectl.1.33"
pytestmark = [
    pytest.mark.scenario,
    pytest.mark.skipif(not KUBECTL.exists(), reason="KCM_KUBECTL_DIR names no kubectl"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here"),
]
BLOCKS = [block.text for block in blocks(ROOT / "docs" / "access.md", "sh")]


def find_commands(words: str) -> str:
    """Returns the block of the page that has these words."""
    (text,) = [text for text in BLOCKS if words in text]
    return text


def test_a_user_and_a_machine_get_certificates(system: System) -> None:
    system.start()
    programs = system.folder / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(KUBECTL)
    (system.folder / ".kcm").symlink_to(system.env["KCM_STATE_DIR"])
    env = {**system.env, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(system.folder)}

    def run(commands: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", commands],
            cwd=system.folder,
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
