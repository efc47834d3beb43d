"""Runs one of our watching programs in a process of its own, and paces the writes for it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from bench.harness import ROOT, Bench

T = TypeVar("T")


class Listener:
    """A program that prints `ready`, and at the end of its input, as JSON, what it saw.

    It is ready once this is constructed, which raises RuntimeError if it does not start.
    """

    def __init__(self, bench: Bench, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=bench.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        bench.processes.append(self._process)  # which ends them, whatever happens
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{module} did not start")

    def finish(self) -> Any:
        """Ends the program, and returns what it saw."""
        output, _ = self._process.communicate(b"", timeout=30)
        return json.loads(output)


def paced(things: Sequence[T], rate: float) -> Iterator[T]:
    """Yields one thing each 1/rate seconds, however long the last one took."""
    start = time.monotonic()
    for number, thing in enumerate(things):
        time.sleep(max(0.0, start + number / rate - time.monotonic()))
        yield thing
