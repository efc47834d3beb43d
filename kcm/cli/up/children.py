"""Supervised processes: their command lines, logs and restarts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kcm.cli.up import groups
from kcm.cli.up.forks import ForkedProgram, can_fork, load_shared_modules

FIRST_PAUSE = 0.5  # seconds before the first restart, doubled with each further one
LONGEST_PAUSE = 30.0  # seconds
HEALTHY_AFTER = 60.0  # seconds of running after which the pause is reset
LARGEST_LOG = 50 * 1024 * 1024  # bytes after which the log becomes NAME.log.1
_TAIL_LINES = 15  # the last lines of a log that are shown


@dataclass(frozen=True)
class ProcessSpec:
    """A process to run. Processes of a lower stage are stopped first."""

    name: str
    command: Sequence[str]
    log: Path
    stage: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    writes_own_log: bool = False


def _run(spec: ProcessSpec, output: int) -> subprocess.Popen[bytes] | ForkedProgram:
    """Runs a process in a session of its own. It writes to the file descriptor `output`."""
    if can_fork(spec.command):
        load_shared_modules()
        return ForkedProgram(spec.command, spec.env, output)
    return subprocess.Popen(
        list(spec.command),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, **spec.env},
    )


class Child:
    """A process that is restarted when it exits."""

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = spec
        self.process: subprocess.Popen[bytes] | ForkedProgram | None = None
        self.restarts = 0
        self.due = 0.0  # the monotonic time of the next start
        self._pause = FIRST_PAUSE
        self._started = 0.0
        self.log_start = 0  # the size of the log when the process started

    @property
    def pid(self) -> int:
        """Returns the pid of the process, which leads its group, 0 if it is not running."""
        return self.process.pid if self.process is not None else 0

    def start(self, now: float) -> None:
        """Starts the process in a process group of its own. `now` is monotonic time."""
        self.rotate_log()
        self.log_start = self._log_size()
        self._started = now
        output = self._open_log()
        try:
            self.process = _run(self.spec, output)
        finally:
            os.close(output)

    def reap(self, now: float) -> int | None:
        """Returns the exit code if the process has just exited, otherwise None.

        It then kills the rest of the process group, and sets when the process is due to be
        restarted.
        """
        if self.process is None:
            return None
        code = self.process.poll()
        if code is None:
            return None
        groups.kill(self.process.pid)
        self.process = None
        if now - self._started >= HEALTHY_AFTER:
            self._pause = FIRST_PAUSE
        self.due = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self.restarts += 1
        return code

    def rotate_log(self) -> None:
        """Copies a large log to NAME.log.1 and truncates it. The process keeps its open file."""
        log = self.spec.log
        if self._log_size() > LARGEST_LOG:
            shutil.copyfile(log, log.with_name(log.name + ".1"))
            os.truncate(log, 0)
            self.log_start = 0

    def _log_size(self) -> int:
        return self.spec.log.stat().st_size if self.spec.log.exists() else 0

    def log_tail(self) -> str:
        """Returns the last lines of the log that this process wrote."""
        if not self.spec.log.exists():
            return "(no log)"
        with self.spec.log.open("rb") as log:
            log.seek(self.log_start)
            text = log.read()[-20_000:].decode(errors="replace")
        return "\n".join(text.splitlines()[-_TAIL_LINES:]) or "(the log is empty)"

    def _open_log(self) -> int:
        if self.spec.writes_own_log:
            return os.open(os.devnull, os.O_WRONLY)
        return os.open(self.spec.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
