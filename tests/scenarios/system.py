"""`kcm up` in a folder of its own, for scenarios."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import PATIENCE, until
from tests.integration.apiserver.kubectl import VERSIONS, find
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
KCM = (sys.executable, "-m", "kcm.cli.main")
KUBECTL = find(VERSIONS[-1])
needs_kubectl = pytest.mark.skipif(not KUBECTL, reason="needs kubectl, see KCM_KUBECTL_DIR")


class Kcm:
    """The commands and the objects of a kcm with its state in a folder."""

    def __init__(self, folder: Path, state_dir: Path) -> None:
        """`folder` is where the commands run."""
        self.folder = folder
        self.state_dir = state_dir

    @property
    def env(self) -> dict[str, str]:
        kept = {name: v for name, v in os.environ.items() if not name.startswith("KCM_")}
        return {**kept, "KCM_STATE_DIR": str(self.state_dir), "PYTHONPATH": str(ROOT)}

    def kcm(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*KCM, *args], env=self.env, capture_output=True, text=True, check=False
        )

    def kubectl(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs the newest kubectl, as somebody at a prompt does."""
        return subprocess.run(
            [str(KUBECTL), f"--kubeconfig={self.state_dir / 'kubeconfig'}", *args],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    def apply(self, manifest: str) -> None:
        """Applies a manifest with `kcm apply`."""
        file = self.folder / "manifest.yaml"
        file.write_text(manifest)
        done = self.kcm("apply", "-f", str(file))
        assert done.returncode == 0, done.stderr

    @cached_property
    def store(self) -> Store:
        io = RedisIO(Settings(state_dir=self.state_dir))
        io.attach()
        return Store(io)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """Returns an object as JSON; {} if there is none."""
        resource = BUILT_IN.lookup(kind)
        try:
            obj = self.store.get(resource, f"{namespace}/{name}" if resource.namespaced else name)
        except errors.NotFound:
            return {}
        return codec.to_dict(obj)

    def patch(self, kind: str, name: str, change: dict[str, Any]) -> None:
        """Merges `change` into an object of the cluster."""
        self.store.patch(BUILT_IN.lookup(kind), name, change)

    def items(self, kind: str, **labels: str) -> list[dict[str, Any]]:
        """Objects of all namespaces that have these labels."""
        manifests = (codec.to_dict(one) for one in self.store.list(BUILT_IN.lookup(kind)).items)
        return [
            one for one in manifests if labels.items() <= one["metadata"].get("labels", {}).items()
        ]

    def pods(self) -> list[str]:
        """Names of all pods."""
        return [pod["metadata"]["name"] for pod in self.items("pods")]


class System(Kcm):
    """Runs `kcm up` on a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, folder / "s")
        self.flower, self.health, self.api = free_port(), free_port(), free_port()
        self.output = folder / "output.txt"
        self.process: subprocess.Popen[bytes] | None = None
        self.seen: set[psutil.Process] = set()

    def start(self, *extra: str) -> None:
        """Starts `kcm up`, and waits until it says that it is ready.

        There is a real node only where it is asked for, with `--kubelet`.
        """
        ports = {"flower": self.flower, "health": self.health, "api": self.api}
        flags = (*(f"--{name}-port={port}" for name, port in ports.items()), "--no-kubelet", *extra)
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [*KCM, "up", *flags], env=self.env, stdout=out, stderr=out, cwd=self.folder
            )
        until(lambda: "Ctrl-C stops it all" in self.text() or self.has_ended(), "kcm up")
        assert not self.has_ended(), self.text()
        self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def text(self) -> str:
        return self.output.read_text()

    def stop(self, number: int = signal.SIGINT) -> None:
        """Sends a signal to `kcm up` and waits until it has ended."""
        assert self.process is not None
        self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))
        self.process.send_signal(number)
        self.process.wait(PATIENCE)

    def list_left_processes(self) -> list[psutil.Process]:
        """Processes of ours that still run."""
        return [p for p in self.seen if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def child(self, name: str) -> int:
        record = json.loads((self.state_dir / "run" / "up.json").read_text())
        return int(next(c["pid"] for c in record["children"] if c["name"] == name))

    def kill(self, name: str) -> None:
        """Kills a child process, and waits until there is another in its place."""
        before = self.child(name)
        os.kill(before, signal.SIGKILL)
        until(lambda: self.child(name) != before, name)


@pytest.fixture
def system() -> Iterator[System]:
    folder = Path(tempfile.mkdtemp(prefix="kcm-up-"))
    system = System(folder)
    yield system
    if system.process is not None and not system.has_ended():
        system.stop(signal.SIGTERM)
    for process in system.list_left_processes():
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)
