"""What pods use, looked at now and then; how much CPU a second follows from two looks.

Guarantees: a look is made at most every `FRESH` seconds, however many ask. Disk is
looked at every `DISK_FRESH` seconds only: it takes reading every folder.

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
from kcm.kubelet.cri import Container, ContainerState, ContainerStats, Runtime
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.stats.machine import MachineUse, look, tree_size

FRESH = 2.0  # seconds
DISK_FRESH = 60.0
_BILLION = 10**9


@dataclass(frozen=True)
class ContainerUse:
    """One container. `cores` is CPU over the last looks, None before the second one."""

    name: str
    id: str
    at: datetime
    cpu: int  # nanoseconds since its start
    cores: float | None
    memory: int  # working set, in bytes
    memory_usage: int
    processes: int
    started_at: datetime | None = None
    log_bytes: int = 0


@dataclass(frozen=True)
class Disk:
    """Bytes and files of a pod: its volumes by name, and in all with its logs."""

    size: int = 0
    files: int = 0
    volumes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PodUse:
    """One pod: the sum of its running containers."""

    uid: str
    name: str
    namespace: str
    containers: tuple[ContainerUse, ...] = ()
    disk: Disk = Disk()

    @property
    def memory(self) -> int:
        return sum(one.memory for one in self.containers)

    @property
    def processes(self) -> int:
        return sum(one.processes for one in self.containers)

    @property
    def cpu(self) -> int:
        return sum(one.cpu for one in self.containers)

    @property
    def cores(self) -> float | None:
        known = [one.cores for one in self.containers if one.cores is not None]
        return sum(known) if known else None


@dataclass(frozen=True)
class Summary:
    """All of it. `window` is the time between the looks, 0 after the first one."""

    machine: MachineUse
    cores: float | None
    pods: tuple[PodUse, ...]
    window: float = 0.0

    def pod(self, uid: str | None) -> PodUse | None:
        return next((one for one in self.pods if one.uid == uid), None)


class StatsProvider:
    """Thread-safe."""

    def __init__(
        self,
        runtime: Runtime,
        pods: Callable[[], Iterable[Pod]],
        root: Path,
        pods_dir: Path,
        clock: Clock,
    ) -> None:
        self._runtime = runtime
        self._pods = pods
        self._root = root
        self._pods_dir = pods_dir
        self._clock = clock
        self._lock = threading.Lock()
        self._last: tuple[float, Summary] | None = None
        self._disks: dict[str, tuple[float, Disk]] = {}

    def summary(self, *, fresh: float = FRESH) -> Summary:
        """A look that is at most `fresh` seconds old. Raises ContainerRuntimeError."""
        with self._lock:
            now = self._clock.monotonic()
            if self._last is None or now - self._last[0] > fresh:
                before = self._last
                self._last = (now, self._look(now, before))
            return self._last[1]

    def _look(self, now: float, before: tuple[float, Summary] | None) -> Summary:
        machine = look(self._root, self._clock.now())
        window = now - before[0] if before else 0.0
        old = before[1] if before else None
        known = {one.id: one for pod in (old.pods if old else ()) for one in pod.containers}
        running: dict[str, list[ContainerUse]] = {}
        for container in self._runtime.list_containers():
            if container.state is ContainerState.RUNNING:
                used = self._container(container, known.get(container.id))
                if used is not None:
                    running.setdefault(container.labels.get(labels.POD_UID, ""), []).append(used)
        pods = tuple(self._pod(pod, running.get(pod.uid or "", []), now) for pod in self._pods())
        self._disks = {pod.uid: self._disks[pod.uid] for pod in pods if pod.uid in self._disks}
        cores = _cores(machine.cpu, old.machine.cpu, window) if old else None
        return Summary(machine, cores, pods, window)

    def _container(self, container: Container, old: ContainerUse | None) -> ContainerUse | None:
        try:
            found = self._runtime.container_stats(container.id)
            status = self._runtime.container_status(container.id)
        except errors.ContainerRuntimeError:
            return None  # it has just ended
        return ContainerUse(
            name=container.name,
            id=container.id,
            at=found.at,
            cpu=found.cpu_nanoseconds,
            cores=_container_cores(found, old),
            memory=found.memory_working_set_bytes,
            memory_usage=found.memory_usage_bytes,
            processes=found.processes,
            started_at=status.started_at,
            log_bytes=_size(status.log_path),
        )

    def _pod(self, pod: Pod, containers: list[ContainerUse], now: float) -> PodUse:
        uid = pod.uid or ""
        at, disk = self._disks.get(uid, (-DISK_FRESH, Disk()))
        if now - at >= DISK_FRESH:
            disk = self._disk(uid)
            self._disks[uid] = (now, disk)
        ordered = tuple(sorted(containers, key=lambda one: one.name))
        return PodUse(uid, pod.name or "", pod.namespace or "", ordered, disk)

    def _disk(self, uid: str) -> Disk:
        """A pod's volumes; those that are not its own (hostPath) are not below its folder."""
        volumes: dict[str, int] = {}
        size = files = 0
        for folder in (self._pods_dir / uid / "volumes").glob("*/*"):
            used, count = tree_size(folder)
            volumes[folder.name] = used
            size, files = size + used, files + count
        return Disk(size, files, volumes)


def _container_cores(found: ContainerStats, old: ContainerUse | None) -> float | None:
    if old is None:
        return None
    return _cores(found.cpu_nanoseconds, old.cpu, (found.at - old.at).total_seconds())


def _cores(now: int, before: int, seconds: float) -> float | None:
    """CPU in cores between two looks. Sums may go back where a process has ended."""
    return max(now - before, 0) / seconds / _BILLION if seconds > 0 else None


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size if path else 0
    except OSError:
        return 0
