"""What the machine uses as a whole.

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
class MachineUse:
    """One look. CPU is the sum since the machine's start, in nanoseconds; sizes are bytes.

    `pids` and `most_pids` are 0 where the system does not say.
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
    most_pids: int
    started_at: float = 0.0  # seconds since 1970

    @property
    def working_set(self) -> int:
        """Memory that could not be taken back at once."""
        return max(self.memory - self.memory_available, 0)


def look(root: Path, now: datetime) -> MachineUse:
    """This machine; its disk is the one with `root`."""
    times = psutil.cpu_times()
    memory = psutil.virtual_memory()
    disk = os.statvfs(root)
    pids, most = _pids()
    return MachineUse(
        at=now,
        cpu=int(sum(times) * _BILLION) - _idle(times),
        memory=int(memory.total),
        memory_available=int(memory.available),
        disk=disk.f_blocks * disk.f_frsize,
        disk_available=disk.f_bavail * disk.f_frsize,
        inodes=disk.f_files,
        inodes_free=disk.f_ffree,
        pids=pids,
        most_pids=most,
        started_at=psutil.boot_time(),
    )


def _idle(times: object) -> int:
    """Time in which nothing was done; guests' time is counted in that of users already."""
    names = ("idle", "iowait", "guest", "guest_nice")
    return int(sum(getattr(times, name, 0.0) for name in names) * _BILLION)


def _pids() -> tuple[int, int]:
    try:
        most = min(
            int(Path("/proc/sys/kernel/pid_max").read_text("ascii")),
            int(Path("/proc/sys/kernel/threads-max").read_text("ascii")),
        )
        running = int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0, 0
    return running, most


def tree_size(*folders: Path) -> tuple[int, int]:
    """Bytes on disk and files of folders, links not followed; what vanishes counts as nothing."""
    size = files = 0
    waiting = list(folders)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    size += found.st_blocks * 512
                    files += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
        except OSError:
            continue
    return size, files
