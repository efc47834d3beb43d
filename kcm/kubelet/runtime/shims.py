"""Ends the shims that containerd has lost.

containerd starts a process beside each sandbox, its shim. If containerd is killed while it does so,
or the kubelet that asked for the sandbox is, a shim can be left over: containerd removes its
record, often its folder as well, and not the process, whose 14 MB stay until the machine's next
start.

Guarantees: a process is ended only if it is a shim of the kubelet's own runtime that has nothing to
look after, and if two looks have found that its folder was removed, or that it was started for a
sandbox of CRI which the runtime does not list.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from kcm.clock import Clock
from kcm.errors import ContainerRuntimeError
from kcm.kubelet.runtime.process.processes import start_of

log = structlog.get_logger("kcm.kubelet")

PERIOD = 60.0  # seconds between two looks
_FOLDER = "/io.containerd.runtime.v2.task/k8s.io/"
_REMOVED = " (deleted)"  # what the kernel adds to the name of a folder that is gone
_TYPE = "io.kubernetes.cri.container-type"  # an annotation in what the shim was started with


class ShimCollector:
    """Looks for lost shims of one runtime."""

    def __init__(self, socket: str, list_sandboxes: Callable[[], set[str]], clock: Clock) -> None:
        """`socket` is the path at which the runtime listens, and which its shims are given.

        `list_sandboxes` returns the ids of all sandboxes of the runtime, or raises
        ContainerRuntimeError.
        """
        self._socket = socket
        self._list_sandboxes = list_sandboxes
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
        idle = {pid: folder for pid in pids if (folder := self._find_idle(pid))}
        with suppress(
            ContainerRuntimeError
        ):  # what the runtime does not tell is seen at the next look
            # Listed after the shims were, so that the sandbox of each has had time to be there.
            sandboxes = self._list_sandboxes() if idle else set()
            lost = {(pid, start_of(pid)) for pid in idle if _is_lost(pid, idle[pid], sandboxes)}
            ended = sorted(pid for pid, _ in lost & self._seen if self._end(pid))
            self._seen = lost
            return ended
        return []

    def _find_idle(self, pid: int) -> str:
        """Returns the folder of a process that is a shim of this runtime without work, or ""."""
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if not os.path.basename(words[0]).startswith(b"containerd-shim"):
                return ""
            address = words[words.index(b"-address") + 1]
            folder = os.readlink(f"/proc/{pid}/cwd")
            children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        except (OSError, ValueError, IndexError):
            return ""  # it has ended, or is no shim
        is_idle = bool(children) and not any(children)
        is_own = os.fsdecode(address) == self._socket and _FOLDER in folder
        return folder if is_own and is_idle else ""

    def _end(self, pid: int) -> bool:
        with suppress(OSError):
            process = os.pidfd_open(pid)
            try:
                # The pid may be another process's by now; the one that is open cannot change.
                if self._find_idle(pid):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    log.warning("ended a shim that the container runtime has lost", pid=pid)
                    return True
            finally:
                os.close(process)
        return False


def _is_lost(pid: int, folder: str, sandboxes: set[str]) -> bool:
    """Reports whether the runtime has lost the shim with this folder."""
    if folder.endswith(_REMOVED):
        return True
    if os.path.basename(folder) in sandboxes:
        return False
    try:  # the folder is one of the runtime's mount namespace
        config = json.loads(Path(f"/proc/{pid}/cwd/config.json").read_bytes())
        return bool(config["annotations"][_TYPE] == "sandbox")
    except (OSError, ValueError, KeyError, TypeError):
        return False
