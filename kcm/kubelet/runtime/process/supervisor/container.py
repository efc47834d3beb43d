"""The container in its supervisor: its main process, its streams and its other processes."""

from __future__ import annotations

import fcntl
import os
import sys
import termios
import time

from kcm.kubelet.runtime.process import processes
from kcm.kubelet.runtime.process.supervisor import launch
from kcm.kubelet.runtime.process.supervisor.logs import LogFile
from kcm.kubelet.runtime.process.supervisor.streams import Input, Output
from kcm.kubelet.runtime.process.wire import Fields, get_number, get_text

_TERM = 15
_STDIN = 0


class SupervisedContainer:
    """A container, which starts once and runs until none of its processes is left.

    It is killed at `kill_at`.
    """

    def __init__(self, record: Fields) -> None:
        self.record = record
        self.pid = 0
        self.exit_code: int | None = None
        self.kill_at: float | None = None  # monotonic; None while it is not stopped
        self.outputs: list[Output] = []
        self.input: Input | None = None
        self.terminal = -1
        self.cgroups = record.get("cgroup", [])
        self.log = LogFile(
            get_text(record, "log"),
            get_number(record, "log_max_size"),
            get_number(record, "log_max_files"),
        )

    def start(self) -> None:
        """Starts the main process. Raises StartError."""
        tty = get_text(self.record, "tty") == "1"
        ours, theirs = self._terminal() if tty else self._pipes()
        try:
            argv = self.record.get("argv", [""])
            self.pid = launch.start(self.record, argv, theirs, tty=tty)
        finally:
            for fd in set(theirs):
                os.close(fd)
        names = ("stdout",) if tty else ("stdout", "stderr")
        self.outputs = [
            Output(fd, name, self.log) for fd, name in zip(ours[1:], names, strict=True)
        ]
        if ours[_STDIN] >= 0:
            self.input = Input(ours[_STDIN])

    def _terminal(self) -> tuple[list[int], list[int]]:
        master, slave = os.openpty()
        self.terminal = master
        takes_input = get_text(self.record, "stdin") == "1"
        return [os.dup(master) if takes_input else -1, master], [slave, slave, slave]

    def _pipes(self) -> tuple[list[int], list[int]]:
        out, err = os.pipe(), os.pipe()
        if get_text(self.record, "stdin") == "1":
            stdin = os.pipe()
        else:
            stdin = (os.open(os.devnull, os.O_RDONLY), -1)
        return [stdin[1], out[0], err[0]], [stdin[0], out[1], err[1]]

    def resize(self, columns: int, rows: int) -> None:
        """Sets the terminal's size; the kernel then signals the processes.

        Does nothing without one.
        """
        if self.terminal >= 0:
            sizes = [rows, columns, 0, 0]
            packed = b"".join(size.to_bytes(2, sys.byteorder) for size in sizes)
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, packed)

    def stop(self, grace: float) -> None:
        """Sends SIGTERM now, and SIGKILL after `grace` seconds. An earlier deadline is kept."""
        if grace > 0 and self.kill_at is None:
            processes.kill(self.pid, _TERM)
        at = time.monotonic() + grace
        self.kill_at = at if self.kill_at is None else min(self.kill_at, at)

    def kill_if_due(self) -> None:
        """Kills all processes if the grace period is over, and again each second after that."""
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self.kill_all()
            self.kill_at = time.monotonic() + 1.0

    def kill_all(self) -> None:
        """Sends SIGKILL to all processes of the container."""
        pids = processes.descendants(os.getpid(), processes.snapshot())
        for pid in {*pids, *processes.members(self.cgroups)} or {self.pid}:
            processes.kill(pid)

    def forbid_forks(self) -> None:
        """Stops the processes from forking, because they might fork faster than they are killed."""
        processes.forbid_forks(self.cgroups)

    def oom_kills(self) -> int:
        """Returns how many of its processes the kernel killed because of the memory limit."""
        for group in self.cgroups:
            for name in ("memory.events", "memory.oom_control"):
                for line in processes.read(f"{group}/{name}").splitlines():
                    key, _, value = line.partition(" ")
                    if key == "oom_kill":
                        return int(value)
        return 0

    def finish(self) -> None:
        """Writes the last output to the log. All processes that could write must be gone."""
        for output in self.outputs:
            output.finish()
        self.log.close()
