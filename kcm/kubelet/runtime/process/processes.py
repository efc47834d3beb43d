"""Reads processes from Linux' /proc: their identity, descent and use of resources.

A pid alone does not identify a process, because the kernel reuses it later. A pid with its start
time (clock ticks since boot) and the boot id does. Without /proc, descendants are not known.
Supervisors use this module, so it imports little.
"""

from __future__ import annotations

import os

Stat = tuple[int, int, int, int]
"""A process's parent, start time, CPU time, and CPU time of reaped children, in clock ticks."""

KILL = 9
_PPID, _UTIME, _STIME, _CUTIME, _CSTIME, _START = 1, 11, 12, 13, 14, 19  # fields after the name


def boot_id() -> str:
    """Returns an id of this boot of the machine, or "" if the system has none."""
    return read("/proc/sys/kernel/random/boot_id").strip()


def read(path: str) -> str:
    """Returns the text of a small file, or "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def stat(pid: int) -> Stat | None:
    """Returns the process's parent and times, or None if it is gone or a zombie."""
    _, separator, rest = read(f"/proc/{pid}/stat").rpartition(") ")
    fields = rest.split()
    if not separator or len(fields) <= _START or fields[0] in "ZX":
        return None
    return (
        int(fields[_PPID]),
        int(fields[_START]),
        int(fields[_UTIME]) + int(fields[_STIME]),
        int(fields[_CUTIME]) + int(fields[_CSTIME]),
    )


def start_of(pid: int) -> int:
    """Returns when a process started, in clock ticks since boot; 0 if that is unknown."""
    process = stat(pid)
    return process[1] if process else 0


def is_same(pid: int, start: int, boot: str) -> bool:
    """Reports whether the process with that pid still is the one with that start time and boot."""
    if pid <= 0 or boot != boot_id():
        return False
    if start:
        return start_of(pid) == start
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def snapshot() -> dict[int, Stat]:
    """Returns all living processes by pid."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return {}
    processes = ((int(name), stat(int(name))) for name in names if name.isdigit())
    return {pid: seen for pid, seen in processes if seen is not None}


def descendants(root: int, seen: dict[int, Stat]) -> list[int]:
    """Returns the pids of a process's children, their children and so on, the nearest first."""
    children: dict[int, list[int]] = {}
    for pid, (parent, *_) in seen.items():
        children.setdefault(parent, []).append(pid)
    pids: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(0), [])
        pids += below
        waiting += below
    return pids


def members(cgroups: list[str]) -> list[int]:
    """Returns the pids of the processes in these control groups, which are paths of folders."""
    lines = [line for path in cgroups for line in read(f"{path}/cgroup.procs").split()]
    return [int(line) for line in lines if line.isdigit()]


def forbid_forks(cgroups: list[str]) -> None:
    """Stops the processes in these control groups from forking.

    Otherwise a fork bomb could start processes faster than they are killed. `cgroups` are paths of
    folders; those without `pids.max` are left alone.
    """
    for group in cgroups:
        if os.path.exists(f"{group}/pids.max"):
            with open(f"{group}/pids.max", "w", encoding="ascii") as file:
                file.write("0")


def kill(pid: int, signal: int = KILL) -> bool:
    """Sends a signal, SIGKILL by default. Returns False if that fails."""
    try:
        os.kill(pid, signal)
    except OSError:
        return False
    return True


def with_variable(name: str, value: str) -> list[int]:
    """Returns the pids of processes that were started with this variable, of those we can read."""
    wanted = f"{name}={value}"
    return [pid for pid in snapshot() if wanted in read(f"/proc/{pid}/environ").split("\0")]
