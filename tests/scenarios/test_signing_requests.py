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
COMMANDS = next(
    block.text
    for block in blocks(ROOT / "docs" / "access.md", "sh")
    if "kubectl certificate approve" in block.text
)


def test_a_user_gets_a_certificate_and_is_known_by_it(system: System) -> None:
    system.start()
    programs = system.folder / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(KUBECTL)
    (system.folder / ".kcm").symlink_to(system.env["KCM_STATE_DIR"])
    done = subprocess.run(
        ["sh", "-e", "-c", COMMANDS],
        cwd=system.folder,
        env={**system.env, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(system.folder)},
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "frank" in done.stdout
    assert "[dev system:authenticated]" in done.stdout
