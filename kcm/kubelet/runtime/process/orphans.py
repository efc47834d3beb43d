"""Finds the processes that outlive their killed supervisors, as children of the kubelet.

A living supervisor adopts all orphans among its descendants. When it dies, they go to the next
process above it that adopts orphans, which is the kubelet that started it. Guarantees: a process
cannot escape this, although it can change its environment and its session. Does not guarantee
anything for supervisors that an earlier kubelet started: their orphans go to init, and only their
control group or their environment identifies them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from kcm.kubelet.runtime.process import processes
from kcm.kubelet.runtime.process.supervisor import system

_PARENT, _SESSION = 1, 3  # fields of /proc/<pid>/stat after the name


class Children:
    """Distinguishes the supervisors that this process started from orphans. Thread-safe."""

    def __init__(self, *, adopts: bool) -> None:
        """`adopts` says whether this process adopts orphans.

        If so, all of its children in sessions of their own must be supervisors.
        """
        self._adopts = adopts
        self._supervisors: set[int] = set()
        self._lock = threading.Lock()
        if adopts:
            system.become_subreaper()

    def start(self, spawn: Callable[[], int]) -> int:
        """Starts a supervisor by calling `spawn`; returns its pid."""
        with self._lock:
            pid = spawn()
            self._supervisors.add(pid)
        return pid

    def has_ended(self, pid: int) -> bool:
        """Reports whether a supervisor has exited, and reaps it if so."""
        with self._lock:
            try:
                ended, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                ended = pid
            if ended:
                self._supervisors.discard(pid)
        return bool(ended)

    def orphans(self) -> list[int]:
        """Returns the pids of living orphans and all their descendants. Reaps dead orphans."""
        if not self._adopts:
            return []
        own, session = os.getpid(), os.getsid(0)
        orphans: list[int] = []
        with self._lock:
            for pid in _list_children(own, session):
                if pid not in self._supervisors and not _reap_if_ended(pid):
                    orphans.append(pid)
        if not orphans:
            return []
        seen = processes.snapshot()
        return [*orphans, *(below for pid in orphans for below in processes.descendants(pid, seen))]


def _list_children(parent: int, session: int) -> list[int]:
    """Returns the children of a process that are not in that session, zombies included."""
    pids = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit():
            continue
        fields = processes.read(f"/proc/{name}/stat").rpartition(") ")[2].split()
        is_child = len(fields) > _SESSION and int(fields[_PARENT]) == parent
        if is_child and int(fields[_SESSION]) != session:
            pids.append(int(name))
    return pids


def _reap_if_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True
