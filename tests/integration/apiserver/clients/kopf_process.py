"""A `kopf run` process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from kcm.testing.waiting import until
from tests.integration.apiserver.serving import Live


class Operator:
    """A `kopf run` process, started as an operator's author would."""

    def __init__(self, api: Live, folder: Path, script: Path, **environment: str) -> None:
        self._environment = os.environ | {"KUBECONFIG": str(api.kubeconfig)} | environment
        self._script = script
        self._log = folder / "kopf.log"
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "kopf", "run", str(self._script)),
                    *("--all-namespaces", "--verbose"),
                ],
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        return self.process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def until(self, holds: Callable[[], object], what: str) -> None:
        until(holds, what, words=lambda: self.words)

    @property
    def words(self) -> str:
        return self._log.read_text()
