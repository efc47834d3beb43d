"""Measures the memory and the CPU that processes use."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from subprocess import Popen

import psutil

from bench.harness import Bench, progress

MB = 1_000_000
_TITLES = (
    *("kcm.manager", "kcm.apiserver", "kubelet"),
    *("beat", "flower", "worker", "nodes", "up"),
)


def tree(pid: int) -> list[psutil.Process]:
    """Returns a process and all of its descendants."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def own_memory(process: psutil.Process) -> float:
    """Returns the memory of a process in MB (PSS): shared pages count for their share."""
    return float(process.memory_full_info().pss) / MB


def caching(pid: int) -> list[psutil.Process]:
    """Returns the processes of a worker that have caches: its manager and the pool's children."""
    return tree(pid)[1:]


@dataclass(frozen=True)
class Part:
    """The usage of one process of a system. The title is kept because the process may exit."""

    pid: int
    title: str
    cpu: float  # in per cent of a core
    memory: float  # in MB


def measure(bench: Bench, started: Sequence[Popen[bytes]], seconds: float) -> list[Part]:
    """Measures the server, these processes and their descendants for that many seconds.

    Before that, waits until they should be at rest.
    """
    assert bench.server.process is not None
    time.sleep(4 * bench.sizes.settle_seconds)  # starting takes CPU
    pids = [bench.server.process.pid, *(process.pid for process in started)]
    before = [(p, title(p), cpu_seconds(p)) for pid in pids for p in tree(pid)]
    time.sleep(seconds)
    parts = []
    for process, words, used in before:
        try:
            share = 100 * (cpu_seconds(process) - used) / seconds
            parts.append(Part(process.pid, words, share, own_memory(process)))
        except psutil.NoSuchProcess:
            progress(f"exited while it was measured, and is left out: {words}")
    return parts


def shares(parts: Sequence[Part]) -> str:
    """Formats the CPU share of each process."""
    return ", ".join(f"{part.title} {part.cpu:.2f}" for part in parts)


def sums(parts: Sequence[Part]) -> str:
    """Formats the CPU shares of all processes, summed by title."""
    shares: dict[str, float] = {}
    for part in parts:
        shares[part.title] = shares.get(part.title, 0.0) + part.cpu
    return ", ".join(f"{name} {cpu:.2f}" for name, cpu in shares.items())


def cpu_seconds(process: psutil.Process) -> float:
    """Returns the CPU time that the process has used since its start, in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def cpu_by_title(pids: Sequence[int]) -> dict[str, float]:
    """Returns the CPU seconds of these processes and their descendants, summed by title."""
    totals: dict[str, float] = {}
    for process in (member for pid in pids for member in tree(pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            name, used = title(process), cpu_seconds(process)
            totals[name] = totals.get(name, 0.0) + used
    return totals


def title(process: psutil.Process) -> str:
    """Returns a short name for the program that a process runs."""
    # A process that was given a title has it as a single word. Celery's is "[celeryd: worker@host".
    words = re.split(r"[ :@\]]", " ".join(process.cmdline()).replace("[celery ", ""))
    for word in _TITLES:
        if word in words:
            return word.rpartition(".")[2]
    if any(word.endswith("/supervisor/__main__.py") for word in words):
        return "supervisor"
    return process.name()
