"""kubectl, unmodified, against the live server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSIONS = ("1.27", "1.33")  # oldest and newest that are supported


def find(version: str) -> str | None:
    """Returns the path of kubectl.<version>, in KCM_KUBECTL_DIR or on the PATH, or None."""
    folder = os.environ.get("KCM_KUBECTL_DIR")
    return shutil.which(f"kubectl.{version}", path=folder) or shutil.which(f"kubectl.{version}")


@dataclass
class Kubectl:
    """Runs one version of kubectl in one namespace."""

    binary: str
    kubeconfig: Path
    namespace: str
    folder: Path

    def command(self, *args: str) -> list[str]:
        cache = str(self.folder / "cache")
        return [self.binary, "-n", self.namespace, "--cache-dir", cache, *args]

    def environment(self, **more: str) -> dict[str, str]:
        base = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        return base | {"KUBECONFIG": str(self.kubeconfig)} | more

    def run(self, *args: str, stdin: Any = None, **env: str) -> subprocess.CompletedProcess[str]:
        text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
        return subprocess.run(
            self.command(*args), input=text, env=self.environment(**env), timeout=60,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def __call__(self, *args: str, stdin: Any = None, **env: str) -> str:
        """Runs a command that must succeed; returns what it prints."""
        done = self.run(*args, stdin=stdin, **env)
        assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout

    def run_failing(self, *args: str, stdin: Any = None) -> str:
        """Runs a command that must fail, and returns its error message."""
        done = self.run(*args, stdin=stdin)
        assert done.returncode != 0, f"{args}: {done.stdout}"
        return done.stderr
