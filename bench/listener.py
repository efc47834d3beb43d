"""Runs a watching program of bench in a process of its own, and paces writes for it."""

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
    """A running program that prints `ready`, and when its input is closed, what it saw as JSON.

    The constructor waits until it is ready. Raises RuntimeError if it does not start.
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
        bench.processes.append(self._process)  # so that it is killed at the end
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{module} did not start")

    def finish(self) -> Any:
        """Closes the program's input, and returns what it saw."""
        output, _ = self._process.communicate(b"", timeout=30)
        return json.loads(output)


def paced(things: Sequence[T], rate: float) -> Iterator[T]:
    """Yields the things at `rate` per second, however long the caller takes for each."""
    start = time.monotonic()
    for number, thing in enumerate(things):
        time.sleep(max(0.0, start + number / rate - time.monotonic()))
        yield thing
