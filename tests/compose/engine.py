"""The container engine that runs the composition: Docker's where there is one, else podman.

Podman gets what a bare machine lacks: limits that its container runtime may set, and a network
namespace of its own, so that the containers' addresses exist nowhere else. Without systemd it
runs no health checks by itself; `healthy` runs them.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_LIMIT = 1024


class NoEngineError(Exception):
    """Says that no engine here can run the composition, and what to install."""


@dataclass(frozen=True)
class Engine:
    """Knows how to reach the engine: its command, that of compose, and what stands before both."""

    name: str
    command: Sequence[str]
    composer: Sequence[str]
    separator: str  # between the parts of a container's name
    prefix: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)
    file: str = "docker-compose.yml"
    project: str = "kcm"

    def of(self, file: str, project: str) -> Engine:
        """Returns the engine for another composition."""
        return replace(self, file=file, project=project)

    def run(self, *args: str, check: bool = True, text: str = "") -> str:
        """Runs a command of the engine; returns its output. Raises AssertionError if it fails."""
        return self._run([*self.prefix, *self.command, *args], check=check, text=text)

    def compose(self, *args: str) -> str:
        """Runs a command of compose, with the simulated nodes. Raises AssertionError as `run`."""
        command = [*self.composer, "-f", self.file, "--profile", "nodes", *args]
        return self._run([*self.prefix, *command])

    def here(self, *args: str) -> str:
        """Runs a command where the published ports are. Raises AssertionError if it fails."""
        return self._run([*self.prefix, *args])

    def container(self, service: str, number: int = 1) -> str:
        return self.separator.join((self.project, service, str(number)))

    def healthy(self, container: str) -> bool:
        """Returns whether the container's own health check passes now."""
        if self.name == "docker":
            text = self.run("inspect", "-f", "{{.State.Health.Status}}", container, check=False)
            return text.strip() == "healthy"
        command = [*self.prefix, *self.command, "healthcheck", "run", container]
        result = subprocess.run(command, env=self._env, capture_output=True, check=False)
        return result.returncode == 0

    @property
    def _env(self) -> dict[str, str]:
        return {**os.environ, **self.env}

    def _run(self, command: list[str], *, check: bool = True, text: str = "") -> str:
        done = subprocess.run(
            command, cwd=ROOT, env=self._env, input=text, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if check and done.returncode:
            output = (
                f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
            raise AssertionError(output)
        return done.stdout


def find(folder: Path, env: dict[str, str]) -> Engine:
    """Returns the engine of this machine. Raises NoEngineError."""
    if _succeeds(["docker", "info"]) and _succeeds(["docker", "compose", "version"]):
        return Engine("docker", ["docker"], ["docker", "compose"], "-", env=env)
    missing = [one for one in ("podman", "podman-compose", "runc", "nsenter", "ip")
               if not shutil.which(one)]  # fmt: skip
    if missing or os.geteuid():
        raise NoEngineError(
            "the composition needs Docker with Compose, or as root podman: "
            f"missing are {', '.join(missing) or 'the rights of root'}; "
            "apt-get install podman netavark aardvark-dns iptables catatonit runc iproute2, "
            "pip install podman-compose"
        )
    config = folder / "containers.conf"
    files = min(_LIMIT, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    config.write_text(_CONTAINERS_CONF.format(files=files, processes=_LIMIT))
    return Engine(
        "podman",
        ["podman"],
        ["podman-compose"],
        "_",
        prefix=["nsenter", "--net=/run/netns/kcm-compose"],
        env=env | {"CONTAINERS_CONF": str(config)},
    )


def _succeeds(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
