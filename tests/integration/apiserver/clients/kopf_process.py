"""A `kopf run` process."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.integration.apiserver.serving import Live
from tests.operators import OperatorProcess


class Operator(OperatorProcess):
    """A `kopf run` process, started as an operator's author would."""

    def __init__(self, api: Live, folder: Path, script: Path, **environment: str) -> None:
        command = (
            *(sys.executable, "-m", "kopf", "run", str(script)),
            *("--all-namespaces", "--verbose"),
        )
        super().__init__(command, api.kubeconfig, folder / "kopf.log", **environment)
