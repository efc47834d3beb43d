"""The command `kcm` itself."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

# What an interrupt in an import's weak reference raises is ignored by Python.
INTERRUPTED = """
import os, signal, weakref
class Module: ...
module = Module()
reference = weakref.ref(module, lambda _: os.kill(os.getpid(), signal.SIGINT))
del module
"""
PROGRAM = """
from kcm.cli import main
main._PLACES["interrupted"] = "interrupted:command"
main.main(["interrupted"])
"""


def test_an_interrupt_while_a_command_is_imported_ends_it(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=False)
    assert ended.returncode == -signal.SIGINT
