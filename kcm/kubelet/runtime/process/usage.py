"""Measures what containers use: by control group where there is one, else by /proc.

Source: cAdvisor's working set (usage without inactive file pages), which the kubelet reports and
evicts by, pkg/kubelet/stats, Kubernetes 1.33.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kcm.kubelet.runtime.process import processes

_TICK = 10**9 // os.sysconf("SC_CLK_TCK")  # nanoseconds
_PAGE = os.sysconf("SC_PAGE_SIZE")  # bytes


@dataclass(frozen=True)
class ProcessUsage:
    """CPU time in nanoseconds since the start, memory in bytes, and the number of processes."""

    cpu: int = 0
    usage: int = 0
    working_set: int = 0
    processes: int = 0


def of_groups(groups: Iterable[Path]) -> ProcessUsage | None:
    """Returns the usage of a container's control groups; None if they do not count memory."""
    existing = [group for group in groups if group.exists()]
    usage = _first(existing, ("memory.current", "memory.usage_in_bytes"))
    if usage is None:
        return None
    idle = _stat(existing, "memory.stat", ("inactive_file", "total_inactive_file"))
    micros = _stat(existing, "cpu.stat", ("usage_usec",))
    cpu = micros * 1000 or _first(existing, ("cpuacct.usage",)) or 0
    members = set(processes.members([str(group) for group in existing]))
    return ProcessUsage(cpu, usage, max(usage - idle, 0), len(members))


def of_descendants(supervisor: int, seen: dict[int, processes.Stat]) -> ProcessUsage:
    """Returns the usage of all processes below a supervisor; memory is the sum of resident sets.

    The CPU time of a reaped process counts for the process that reaped it. `seen` is by process id.
    """
    members = processes.descendants(supervisor, seen)
    ticks = sum(own + reaped for _, _, own, reaped in (seen[pid] for pid in members))
    ticks += seen[supervisor][3] if supervisor in seen else 0
    memory = sum(_resident(pid) for pid in members)
    return ProcessUsage(ticks * _TICK, memory, memory, len(members))


def _resident(pid: int) -> int:
    fields = processes.read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _first(groups: list[Path], names: tuple[str, ...]) -> int | None:
    for group in groups:
        for name in names:
            text = processes.read(f"{group}/{name}").strip()
            if text.isdigit():
                return int(text)
    return None


def _stat(groups: list[Path], file: str, keys: tuple[str, ...]) -> int:
    for group in groups:
        lines = dict(line.split()[:2] for line in processes.read(f"{group}/{file}").splitlines())
        for key in reversed(keys):
            if key in lines:
                return int(lines[key])
    return 0
