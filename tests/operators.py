"""An operator as a process of its own, that tests kill and start again."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kcm.testing.waiting import until
from tests.charts.helm import clients_folder

PROGRAMS = Path(__file__).parent / "scenarios" / "operators"


class OperatorProcess:
    """Runs a command with a kubeconfig. What it prints goes into a log."""

    def __init__(
        self, command: Sequence[str], kubeconfig: Path, log: Path, **environment: str
    ) -> None:
        self._command = command
        self._environment = os.environ | {"KUBECONFIG": str(kubeconfig)} | environment
        self._log = log
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log
            )
        return self.process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Waits until `holds` returns a true value; a failure shows the log."""
        until(holds, what, words=lambda: self.words)

    @property
    def words(self) -> str:
        return self._log.read_text()


@contextmanager
def node_operator(
    kubeconfig: Path, folder: Path, identity: str, **environment: str
) -> Iterator[OperatorProcess]:
    """Runs the operator on @kubernetes/client-node, and kills it. Skips without node or library."""
    node, clients = shutil.which("node"), clients_folder()
    if node is None:
        pytest.skip("node is not here")
    if clients is None or not (clients / "node_modules" / "@kubernetes" / "client-node").exists():
        pytest.skip(
            "@kubernetes/client-node is not here: `python tools/fetch_clients.py DIR` gets it; "
            "KCM_CLIENTS_DIR names DIR"
        )
    operator = OperatorProcess(
        [node, str(PROGRAMS / "queues.mjs"), identity],
        kubeconfig,
        folder / f"{identity}.log",
        KCM_CLIENTS_DIR=str(clients),
        **environment,
    )
    try:
        yield operator
    finally:
        operator.kill()
