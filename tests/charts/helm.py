"""helm, unmodified, against a running kcm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

VERSIONS = ("3", "4")
# Where both do the same, one of them will do.
WITH_HELM_3 = pytest.mark.parametrize("helm", ["3"], indirect=True, ids=["helm3"])
WITH_HELM_4 = pytest.mark.parametrize("helm", ["4"], indirect=True, ids=["helm4"])
CHARTS = Path(__file__).with_name("data")
TIMEOUT = "60s"  # of helm's own waiting


def clients_folder() -> Path | None:
    """Returns the folder that tools/fetch_clients.py has filled, or None."""
    name = os.environ.get("KCM_CLIENTS_DIR")
    return Path(name) if name else None


def find(program: str) -> str | None:
    """Returns the path of a client, in KCM_CLIENTS_DIR or on the PATH, or None."""
    return shutil.which(program, path=clients_folder()) or shutil.which(program)


@dataclass
class Helm:
    """Runs one version of helm in one namespace."""

    version: str
    binary: str
    kubeconfig: Path
    namespace: str
    folder: Path

    def run(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [self.binary, "-n", self.namespace, *args]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        return subprocess.run(
            command, input=stdin, env=environment | {"KUBECONFIG": str(self.kubeconfig)},
            timeout=120, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def __call__(self, *args: str, stdin: str | None = None) -> str:
        """Runs a command that must succeed; returns what it prints."""
        done = self.run(*args, stdin=stdin)
        assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout

    def install(self, release: str, chart: str | Path, *flags: str) -> str:
        """Installs a chart and waits until it runs; takes it back where that fails."""
        where = str(CHARTS / chart)
        wait = ("--wait", "--atomic", "--timeout", TIMEOUT, "--create-namespace")
        return self("install", release, where, *wait, *flags)

    def upgrade(self, release: str, chart: str | Path, *flags: str) -> str:
        return self("upgrade", release, str(CHARTS / chart), *self.waiting, *flags)

    @property
    def waiting(self) -> tuple[str, ...]:
        return ("--wait", "--atomic", "--timeout", TIMEOUT)

    def rollback(self, release: str, revision: int) -> str:
        return self("rollback", release, str(revision), "--wait", "--timeout", TIMEOUT)

    def uninstall(self, release: str) -> str:
        return self("uninstall", release, "--wait", "--timeout", TIMEOUT)

    def history(self, release: str) -> list[str]:
        """Returns the state of each revision."""
        revisions: list[dict[str, Any]] = json.loads(self("history", release, "-o", "json"))
        return [one["status"] for one in revisions]
