"""kubectl, unmodified, against the live server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

VERSIONS = ("1.27", "1.33")  # oldest and newest that are tested


def drop_complaints(stderr: str) -> str:
    """Returns what a command wrote to stderr. kubectl 1.33 may complain of the first, empty
    message, for which it has no stream yet.
    """
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if "discarding message" not in line)


def find(version: str) -> str | None:
    """Returns the path of a kubectl of a version in VERSIONS, None if there is none.

    It is kubectl.<version> in KCM_KUBECTL_DIR, on the PATH, or beside the kubectl on the PATH, as
    some packages bring several versions; or that kubectl itself, if it is of the version. For the
    newest version any that is supported will do.
    """
    own = shutil.which("kubectl")
    beside = str(Path(own).resolve().parent) if own else ""
    for folder in (os.environ.get("KCM_KUBECTL_DIR"), None, beside):
        if found := shutil.which(f"kubectl.{version}", path=folder):
            return found
    if own is None:
        return None
    minor = _read_minor(own)
    wanted, oldest = (int(each.partition(".")[2]) for each in (version, VERSIONS[0]))
    fits = minor == wanted or (version == VERSIONS[-1] and minor >= oldest)
    return own if fits else None


@lru_cache
def _read_minor(binary: str) -> int:
    """Returns the minor version of a kubectl, 0 if it does not say."""
    done = subprocess.run(
        [binary, "version", "--client", "-o", "json"], capture_output=True, text=True, check=False
    )
    found = re.search(r'"minor": "(\d+)', done.stdout)
    return int(found[1]) if found else 0


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
