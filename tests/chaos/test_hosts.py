"""A few faults on three hosts; `make chaos-hosts` is the long run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.hosts.network import find_missing
from tests.chaos.hosts.rig import ROOT


def test_nothing_is_doubled_or_lost_by_a_few_faults(tmp_path: Path) -> None:
    if missing := find_missing():
        pytest.skip(missing)
    command = ["-m", "tests.chaos.hosts", "--faults", "3", "--seed", "1", "--folder", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 faults, acknowledged" in done.stdout
