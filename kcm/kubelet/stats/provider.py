"""The stats provider: measures what the node and its pods use.

Guarantees: unless a caller asks for a newer one, a measurement is used for `MAX_AGE` seconds, by
all callers. Disks are only measured every `DISK_MAX_AGE` seconds, because that reads every folder.
The CPU use in cores is computed from two measurements.

Source: pkg/kubelet/stats/cri_stats_provider.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.cri import ContainerStats, Runtime, RuntimeContainer, RuntimeContainerState
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.stats.machine import MachineUsage, measure_machine, measure_tree

MAX_AGE = 2.0  # seconds
DISK_MAX_AGE = 60.0  # seconds
_BILLION = 10**9


@dataclass(frozen=True)
class ContainerUsage:
    """The resources that one container uses. `cores` is None until it was measured twice."""

    name: str
    id: str
    at: datetime
    cpu: int  # CPU time since its start, in nanoseconds
    cores: float | None
    memory: int  # working set, in bytes
    memory_usage: int
    processes: int
    started_at: datetime | None = None
    log_bytes: int = 0


@dataclass(frozen=True)
class DiskUsage:
    """The bytes and files of all volumes of a pod, and the bytes of each volume by name."""

    size: int = 0
    files: int = 0
    volumes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PodStats:
    """The resources that one pod uses: the sum of its running containers, and its volumes."""

    uid: str
    name: str
    namespace: str
    containers: tuple[ContainerUsage, ...] = ()
    disk: DiskUsage = DiskUsage()

    @property
    def memory(self) -> int:
        return sum(container.memory for container in self.containers)

    @property
    def processes(self) -> int:
        return sum(container.processes for container in self.containers)

    @property
    def cpu(self) -> int:
        return sum(container.cpu for container in self.containers)

    @property
    def cores(self) -> float | None:
        measured = [container.cores for container in self.containers if container.cores is not None]
        return sum(measured) if measured else None


@dataclass(frozen=True)
class StatsSummary:
    """The resources that the node and its pods use.

    `window` is the number of seconds since the measurement before, 0 for the first one.
    """

    machine: MachineUsage
    cores: float | None
    pods: tuple[PodStats, ...]
    window: float = 0.0

    def pod(self, uid: str | None) -> PodStats | None:
        return next((pod for pod in self.pods if pod.uid == uid), None)


class StatsProvider:
    """Measures the node and its pods on request. Thread-safe."""

    def __init__(
        self,
        runtime: Runtime,
        pods: Callable[[], Iterable[Pod]],
        *,
        root_dir: Path,
        pods_dir: Path,
        clock: Clock,
    ) -> None:
        self._runtime = runtime
        self._pods = pods
        self._root_dir = root_dir
        self._pods_dir = pods_dir
        self._clock = clock
        self._lock = threading.Lock()
        self._last: tuple[float, StatsSummary] | None = None
        self._disks: dict[str, tuple[float, DiskUsage]] = {}

    def summary(self, *, max_age: float = MAX_AGE) -> StatsSummary:
        """Returns a measurement that is at most `max_age` seconds old.

        Raises ContainerRuntimeError if the runtime cannot list its containers.
        """
        with self._lock:
            now = self._clock.monotonic()
            if self._last is None or now - self._last[0] > max_age:
                before = self._last
                self._last = (now, self._measure(now, before))
            return self._last[1]

    def _measure(self, now: float, before: tuple[float, StatsSummary] | None) -> StatsSummary:
        machine = measure_machine(self._root_dir, self._clock.now())
        window = now - before[0] if before else 0.0
        old = before[1] if before else None
        samples = {
            container.id: container
            for pod in (old.pods if old else ())
            for container in pod.containers
        }
        running: dict[str, list[ContainerUsage]] = {}
        for container in self._runtime.list_containers():
            if container.state is RuntimeContainerState.RUNNING:
                used = self._container(container, samples.get(container.id))
                if used is not None:
                    running.setdefault(container.labels.get(labels.POD_UID, ""), []).append(used)
        pods = tuple(self._pod(pod, running.get(pod.uid or "", []), now) for pod in self._pods())
        self._disks = {pod.uid: self._disks[pod.uid] for pod in pods if pod.uid in self._disks}
        cores = _cores(machine.cpu, old.machine.cpu, window) if old else None
        return StatsSummary(machine, cores, pods, window)

    def _container(
        self, container: RuntimeContainer, old: ContainerUsage | None
    ) -> ContainerUsage | None:
        try:
            stats = self._runtime.container_stats(container.id)
            status = self._runtime.container_status(container.id)
        except errors.ContainerRuntimeError:
            return None  # it has just exited
        return ContainerUsage(
            name=container.name,
            id=container.id,
            at=stats.at,
            cpu=stats.cpu_nanoseconds,
            cores=_container_cores(stats, old),
            memory=stats.memory_working_set_bytes,
            memory_usage=stats.memory_usage_bytes,
            processes=stats.processes,
            started_at=status.started_at,
            log_bytes=_size(status.log_path),
        )

    def _pod(self, pod: Pod, containers: list[ContainerUsage], now: float) -> PodStats:
        uid = pod.uid or ""
        at, disk = self._disks.get(uid, (-DISK_MAX_AGE, DiskUsage()))
        if now - at >= DISK_MAX_AGE:
            disk = self._disk(uid)
            self._disks[uid] = (now, disk)
        ordered = tuple(sorted(containers, key=lambda container: container.name))
        return PodStats(uid, pod.name or "", pod.namespace or "", ordered, disk)

    def _disk(self, uid: str) -> DiskUsage:
        """Measures the volumes in a pod's folder; hostPath volumes are not in it."""
        volumes: dict[str, int] = {}
        size = files = 0
        for folder in (self._pods_dir / uid / "volumes").glob("*/*"):
            used, count = measure_tree(folder)
            volumes[folder.name] = used
            size, files = size + used, files + count
        return DiskUsage(size, files, volumes)


def _container_cores(stats: ContainerStats, old: ContainerUsage | None) -> float | None:
    if old is None:
        return None
    return _cores(stats.cpu_nanoseconds, old.cpu, (stats.at - old.at).total_seconds())


def _cores(now: int, before: int, seconds: float) -> float | None:
    """Returns the CPU used between two measurements, in cores; None if no time has passed.

    Returns 0 if the CPU time has become less because a process has ended.
    """
    return max(now - before, 0) / seconds / _BILLION if seconds > 0 else None


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size if path else 0
    except OSError:
        return 0
