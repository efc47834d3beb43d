"""Measures what the whole machine uses.

Source: the node's part of pkg/kubelet/server/stats/summary.go, and rlimit stats of
pkg/kubelet/stats/pidlimit, Kubernetes 1.33.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil

_BILLION = 10**9


@dataclass(frozen=True)
class MachineUsage:
    """One measurement of the machine.

    `cpu` is the CPU time since the machine's start, in nanoseconds; sizes are in bytes. `pids` and
    `max_pids` are 0 where the system does not report them.
    """

    at: datetime
    cpu: int
    memory: int
    memory_available: int
    disk: int
    disk_available: int
    inodes: int
    inodes_free: int
    pids: int
    max_pids: int
    started_at: float = 0.0  # seconds since 1970

    @property
    def working_set(self) -> int:
        """The bytes of memory in use that the kernel could not free at once."""
        return max(self.memory - self.memory_available, 0)


def measure_machine(root: Path, now: datetime) -> MachineUsage:
    """Measures this machine. Its disk is the file system of `root`."""
    times = psutil.cpu_times()
    memory = psutil.virtual_memory()
    disk = os.statvfs(root)
    pids, most = _pids()
    return MachineUsage(
        at=now,
        cpu=int(sum(times) * _BILLION) - _idle(times),
        memory=int(memory.total),
        memory_available=int(memory.available),
        disk=disk.f_blocks * disk.f_frsize,
        disk_available=disk.f_bavail * disk.f_frsize,
        inodes=disk.f_files,
        inodes_free=disk.f_ffree,
        pids=pids,
        max_pids=most,
        started_at=psutil.boot_time(),
    )


def _idle(times: object) -> int:
    """Returns the nanoseconds of idle time, and of guests' time, which user time includes."""
    names = ("idle", "iowait", "guest", "guest_nice")
    return int(sum(getattr(times, name, 0.0) for name in names) * _BILLION)


def _pids() -> tuple[int, int]:
    """Returns the number of processes and threads, and the limit of it; 0 and 0 if unknown."""
    try:
        most = min(
            int(Path("/proc/sys/kernel/pid_max").read_text("ascii")),
            int(Path("/proc/sys/kernel/threads-max").read_text("ascii")),
        )
        running = int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0, 0
    return running, most


def measure_tree(*folders: Path) -> tuple[int, int]:
    """Returns the bytes on disk and the number of files below the folders. Follows no links.

    Files that are removed meanwhile do not count.
    """
    size = files = 0
    waiting = list(folders)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    size += status.st_blocks * 512
                    files += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
        except OSError:
            continue
    return size, files
