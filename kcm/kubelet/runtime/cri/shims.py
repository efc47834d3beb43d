"""Ends the shims that containerd has lost.

containerd starts a process beside each sandbox, its shim. If containerd is killed while it does so,
or the kubelet that asked for the sandbox is, a shim can be left over: containerd removes its folder
and its record, and not the process, whose 14 MB stay until the machine's next start.

Guarantees: a process is ended only if it is a shim of the kubelet's own runtime that has nothing to
look after, and whose folder was removed two looks ago.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import structlog

from kcm.clock import Clock
from kcm.kubelet.runtime.process.processes import start_of

log = structlog.get_logger("kcm.kubelet")

PERIOD = 60.0  # seconds between two looks
_FOLDER = "/io.containerd.runtime.v2.task/k8s.io/"
_REMOVED = " (deleted)"  # what the kernel adds to the name of a folder that is gone


class ShimCollector:
    """Looks for lost shims of one runtime."""

    def __init__(self, socket: str, clock: Clock) -> None:
        """`socket` is the path at which the runtime listens, and which its shims are given."""
        self._socket = socket
        self._clock = clock
        self._seen: set[tuple[int, int]] = set()  # pid and start of those of the last look

    def run(self, stop: threading.Event) -> None:
        """Looks each PERIOD seconds until `stop` is set."""
        while not stop.is_set():
            self.collect()
            self._clock.wait(stop, PERIOD)

    def collect(self) -> list[int]:
        """Ends the lost shims that the last call has seen, too; returns their pids."""
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        lost = {(pid, start_of(pid)) for pid in pids if self._is_lost(pid)}
        ended = sorted(pid for pid, _ in lost & self._seen if self._end(pid))
        self._seen = lost
        return ended

    def _is_lost(self, pid: int) -> bool:
        """Reports whether a process is a shim of this runtime without a folder and without work."""
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if not os.path.basename(words[0]).startswith(b"containerd-shim"):
                return False
            address = words[words.index(b"-address") + 1]
            folder = os.readlink(f"/proc/{pid}/cwd")
            children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        except (OSError, ValueError, IndexError):
            return False  # it has ended, or is no shim
        removed = _FOLDER in folder and folder.endswith(_REMOVED)
        is_idle = bool(children) and not any(children)
        return os.fsdecode(address) == self._socket and removed and is_idle

    def _end(self, pid: int) -> bool:
        with suppress(OSError):
            process = os.pidfd_open(pid)
            try:
                # The pid may be another process's by now; the one that is open cannot change.
                if self._is_lost(pid):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    log.warning("ended a shim that the container runtime has lost", pid=pid)
                    return True
            finally:
                os.close(process)
        return False
