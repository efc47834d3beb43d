"""Starts processes, restarts those that exit, and stops all of them in order."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from kcm import errors
from kcm.cli.up import groups
from kcm.cli.up.children import Child, ProcessSpec
from kcm.cli.up.folder import StateFolder

LOOK_EVERY = 0.25  # seconds between checks of the processes
LOGS_EVERY = 10.0  # seconds between checks of the logs' sizes
PATIENCE = {0: 3.7, 1: 1.0}  # seconds for a stage to stop, together below 5 s


class UpSupervisor:
    """Supervises the child processes of one `kcm up`.

    The main thread uses it; signal handlers call `interrupt`.
    """

    def __init__(self, folder: StateFolder, report: Callable[[str], None]) -> None:
        self.children: list[Child] = []
        self.stopping = threading.Event()
        self._folder = folder
        self._report = report
        self._interrupts = 0
        self._watchdog: subprocess.Popen[str] | None = None
        self._next_log_look = 0.0

    def interrupt(self, *_: object) -> None:
        """Stops the supervisor. A second call makes it kill the children at once."""
        self._interrupts += 1
        self.stopping.set()

    def add(self, spec: ProcessSpec) -> Child:
        """Starts a process, which is supervised from then on."""
        child = Child(spec)
        self.children.append(child)
        self._start(child)
        return child

    def look(self) -> None:
        """Restarts the processes that have exited, once their back-off is over. Rotates logs."""
        now = time.monotonic()
        self._look_after_watchdog()
        for child in self.children:
            pid, code = child.pid, child.reap(now)
            if code is not None:
                self._send_to_watchdog(f"remove {pid}")
                self._report(
                    f"{child.spec.name} exited ({_how(code)}), restarting it in "
                    f"{child.due - now:g} s; log: {child.spec.log}"
                )
            if child.process is None and now >= child.due:
                self._start(child)
        if now >= self._next_log_look:
            self._next_log_look = now + LOGS_EVERY
            for child in self.children:
                child.rotate_log()

    def require_alive(self) -> None:
        """Raises KcmError, with the end of its log, if a process has exited."""
        for child in self.children:
            code = child.reap(time.monotonic())
            if code is not None:
                raise errors.KcmError(
                    f"{child.spec.name} exited ({_how(code)}) while starting. Its log, "
                    f"{child.spec.log}, ends:\n{child.log_tail()}"
                )

    def run(self, every_look: Callable[[], None] = lambda: None) -> None:
        """Supervises the children until it is interrupted."""
        while not self.stopping.wait(LOOK_EVERY):
            self.look()
            every_look()

    def stop(self) -> None:
        """Stops all children, stage by stage. A second interrupt kills them."""
        self.stopping.set()
        for stage, patience in sorted(PATIENCE.items()):
            names = {c.pid: c.spec.name for c in self.children if c.spec.stage == stage and c.pid}
            hurry = lambda: self._interrupts > 1  # noqa: E731 - one line, used here
            for pid in groups.stop(list(names), patience, self._reap, hurry):
                self._report(f"{names[pid]} did not stop in time and was killed")
        self._reap()
        self._send_to_watchdog("done")
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with suppress(OSError):
                self._watchdog.stdin.close()
            self._watchdog.wait(2.0)
        self._watchdog = None

    def _start(self, child: Child) -> None:
        self._look_after_watchdog()
        child.start(time.monotonic())
        self._send_to_watchdog(f"add {child.pid} {child.spec.stage}")
        self._folder.record(self.children)

    def _reap(self) -> None:
        for child in self.children:
            child.reap(time.monotonic())

    def _look_after_watchdog(self) -> None:
        if self._watchdog is not None and self._watchdog.poll() is None:
            return
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "kcm.cli.up.watchdog"],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for child in self.children:
            if child.pid:
                self._send_to_watchdog(f"add {child.pid} {child.spec.stage}")

    def _send_to_watchdog(self, line: str) -> None:
        pipe: IO[str] | None = self._watchdog.stdin if self._watchdog is not None else None
        if pipe is not None:
            with suppress(OSError):  # a dead watchdog is replaced at the next check
                pipe.write(line + "\n")
                pipe.flush()


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
