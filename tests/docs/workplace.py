"""A folder as a reader has it, with a running `kcm up`, in which the documents' commands run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import httpx
import psutil

from kcm.testing.waiting import until
from tests.charts import helm as helms
from tests.docs.pages import ROOT, Block
from tests.integration.apiserver.kubectl import VERSIONS, find
from tests.ports import free_port

HELM = helms.find(f"helm.{helms.VERSIONS[0]}")
KUBECTL = find(VERSIONS[-1])  # None where there is none: the blocks that need it are left out

READY = "Ctrl-C stops it all"  # says `kcm up`
PATIENCE = 120.0  # seconds for `kcm up` to be ready, and for one block
FOLLOWED = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: followed}
spec:
  replicas: 0
  selector: {matchLabels: {app: followed}}
  template:
    metadata: {labels: {app: followed}}
    spec: {containers: [{name: main, image: nginx}]}
"""
PORT = "10257"  # as the documents have it; the workplace uses a free one instead
PROGRAMS = {
    "kcm": 'exec "{python}" -m kcm.cli.main "$@"',
    "celery": 'exec "{python}" -m celery "$@"',
    "kopf": 'exec "{python}" -m kopf "$@"',
    "python": 'exec "{python}" "$@"',
    "redis-cli": 'exec "{python}" -m tests.docs.programs redis-cli "$@"',
    "curl": 'exec "{python}" -m tests.docs.programs curl "$@"',
}
_ERROR = re.compile(r"^(?:\(error\) )?(?:ERR|WRONGTYPE|NOPERM|NOAUTH|error:).*", re.MULTILINE)


class Workplace:
    """Runs `kcm up` and the documents' commands in a folder of their own.

    It looks like a reader's, with `.venv/bin/kcm`, `examples` and `.kcm`.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kcm-docs-"))  # short: it holds a socket
        self._port, self._api_port = free_port(), free_port()
        self._left: list[psutil.Process] = []  # what blocks left in the background
        self._up: subprocess.Popen[bytes] | None = None
        self._lay_out()

    def _lay_out(self) -> None:
        programs = self.folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        (self.folder / "examples").symlink_to(ROOT / "examples")
        for client, binary in (("kubectl", KUBECTL), ("helm", HELM)):
            if binary:
                (programs / client).symlink_to(binary)
        for name, text in PROGRAMS.items():
            if name in ("redis-cli", "curl") and shutil.which(name):
                continue
            path = programs / name
            path.write_text(f"#!/bin/sh\n{text.format(python=sys.executable)}\n")
            path.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        clean = {name: v for name, v in os.environ.items() if not name.startswith("KCM_")}
        programs = self.folder / ".venv" / "bin"
        return {**clean, "PATH": f"{programs}:{clean['PATH']}", "PYTHONPATH": str(ROOT)}

    @property
    def url(self) -> str:
        """Returns the address of the manager's pages."""
        return f"http://127.0.0.1:{self._port}"

    def metrics_pages(self) -> Iterator[str]:
        """Yields `/metrics` of the manager, the API server, and the kubelet of this machine."""
        yield httpx.get(f"{self.url}/metrics", timeout=PATIENCE).text
        state = self.folder / ".kcm"
        with httpx.Client(
            base_url=f"https://127.0.0.1:{self._api_port}",
            verify=ssl.create_default_context(cafile=state / "apiserver.crt"),
            headers={"Authorization": f"Bearer {(state / 'apiserver-token').read_text().strip()}"},
            timeout=PATIENCE,
        ) as client:
            yield client.get("/metrics").text
            nodes = client.get("/api/v1/nodes", params={"labelSelector": "kcm.dev/process"}).json()
            for node in nodes["items"]:
                name = node["metadata"]["name"]
                yield client.get(f"/api/v1/nodes/{name}/proxy/metrics").text

    def processes(self) -> list[psutil.Process]:
        """Returns `kcm up` and all that it started."""
        assert self._up is not None
        up = psutil.Process(self._up.pid)
        return [up, *up.children(recursive=True)]

    def start(self) -> None:
        """Starts `kcm up`, and returns once everything runs."""
        ports = ["--flower-port", "0", "--health-port", str(self._port)]
        ports += ["--api-port", str(self._api_port)]
        command = ["kcm", "up", *ports]
        log = self.folder / "up.log"
        with log.open("wb") as out:
            self._up = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=out, stderr=out
            )
        until(
            lambda: READY in log.read_text() or self._has_ended(), "kcm up", PATIENCE, log.read_text
        )
        if READY not in log.read_text():
            raise RuntimeError(f"kcm up is not ready:\n{log.read_text()}")

    def _has_ended(self) -> bool:
        return self._up is not None and self._up.poll() is not None

    def stop(self) -> None:
        """Stops what blocks left behind, and `kcm up` as Ctrl-C does."""
        for process in self._left:
            with contextlib.suppress(psutil.NoSuchProcess):  # also if another has its pid now
                for below in [*process.children(recursive=True), process]:
                    below.kill()
        if self._up is not None:
            self._up.send_signal(signal.SIGINT)
            self._up.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, block: Block) -> str:
        """Runs a block; returns what is wrong, '' for nothing."""
        if block.until_interrupt:
            return self._run_until_interrupt(block)
        process = self._start(block, subprocess.PIPE)
        try:
            output = process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"still runs after {PATIENCE:g} s:\n{process.communicate()[0]}"
        self._left += list_members(process.pid)
        if process.returncode != block.exit_code:
            return f"exit code {process.returncode}:\n{output}"
        # With commands on standard input, redis-cli ends with 0 whatever they answer.
        refused = None if block.exit_code else _ERROR.search(output)
        return f"{refused[0]!r} in its output:\n{output}" if refused else ""

    def _start(self, block: Block, stdout: int | IO[bytes]) -> subprocess.Popen[str]:
        """Starts a shell with the block, in a process group of its own."""
        process = subprocess.Popen(
            ["bash", "-eu", "-o", "pipefail", "-c", block.text.replace(PORT, str(self._port))],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._left.append(psutil.Process(process.pid))
        return process

    def _run_until_interrupt(self, block: Block) -> str:
        """Runs a block that follows objects until Ctrl-C; returns what is wrong, '' for nothing.

        It shows what there is, and later a ReplicaSet that is created meanwhile.
        """
        shown = self.folder / "shown"
        with shown.open("wb") as output:
            process = self._start(block, output)
        until(lambda: shown.read_text() or process.poll() is not None, "output", PATIENCE)
        self._kcm("apply", "-f", "-", stdin=FOLLOWED)
        until(
            lambda: "followed" in shown.read_text() or process.poll() is not None,
            "a new object in the output",
            PATIENCE,
            shown.read_text,
        )
        if process.poll() is not None:
            return f"did not run until it was interrupted:\n{shown.read_text()}"
        os.killpg(process.pid, signal.SIGINT)
        process.wait(PATIENCE)
        self._kcm("delete", "rs", "followed")
        return ""

    def _kcm(self, *args: str, stdin: str = "") -> None:
        command = ["kcm", *args]
        subprocess.run(
            command, cwd=self.folder, env=self.environment, input=stdin, text=True, check=True
        )


def list_members(group: int) -> list[psutil.Process]:
    """Returns the processes of a group.

    Unlike the group's number, they are told from later processes with the same pids.
    """
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group:
                members.append(process)
    return members
