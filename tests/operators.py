"""An operator as a process of its own, that tests kill and start again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from kcm.testing.waiting import until


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
