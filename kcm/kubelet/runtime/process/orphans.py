"""What supervisors leave when they are killed: it becomes the kubelet's own child.

A living supervisor adopts all orphans among its descendants. When it dies, they come to
the next process above that adopts, which is the kubelet that started it. Guarantees: a
process cannot shake this off, as it can a variable or a session. Does not guarantee
anything for supervisors that an earlier kubelet started: their orphans go to init, and
only their control group or their mark tells whose they are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from kcm.kubelet.runtime.process import processes
from kcm.kubelet.runtime.process.supervisor import system

_PARENT, _SESSION = 1, 3  # fields of /proc/<pid>/stat after the name


class Children:
    """The supervisors that this process started, told from orphans; thread-safe."""

    def __init__(self, *, adopts: bool) -> None:
        """`adopts`: this process has no children in sessions of their own but supervisors."""
        self._adopts = adopts
        self._supervisors: set[int] = set()
        self._lock = threading.Lock()
        if adopts:
            system.become_subreaper()

    def start(self, spawn: Callable[[], int]) -> int:
        """Start a supervisor; returns its pid."""
        with self._lock:
            pid = spawn()
            self._supervisors.add(pid)
        return pid

    def has_ended(self, pid: int) -> bool:
        """Whether a supervisor has ended; its exit code is taken, so that it can go."""
        with self._lock:
            try:
                ended, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                ended = pid
            if ended:
                self._supervisors.discard(pid)
        return bool(ended)

    def orphans(self) -> list[int]:
        """The orphans that live, with all that is below them; those that have ended are let go."""
        if not self._adopts:
            return []
        own, session = os.getpid(), os.getsid(0)
        found: list[int] = []
        with self._lock:
            for pid in _children(own, session):
                if pid not in self._supervisors and not _let_go(pid):
                    found.append(pid)
        if not found:
            return []
        seen = processes.snapshot()
        return [*found, *(below for pid in found for below in processes.descendants(pid, seen))]


def _children(parent: int, session: int) -> list[int]:
    """The children of a process that are not in its session, zombies included."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit():
            continue
        fields = processes.read(f"/proc/{name}/stat").rpartition(") ")[2].split()
        known = len(fields) > _SESSION and int(fields[_PARENT]) == parent
        if known and int(fields[_SESSION]) != session:
            found.append(int(name))
    return found


def _let_go(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True
