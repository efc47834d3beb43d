"""Limits resources by control groups, where this process may create some.

Guarantees: groups are created only below a group with a name of our own. `kind` is what really is
enforced. There is one group per pod, and in it one per container, in each hierarchy. Version 2
needs the three controllers in a group that can delegate them; version 1 needs at least its memory
hierarchy.

Source: pkg/kubelet/cm (cgroup_manager_linux.go, helpers_linux.go), Kubernetes 1.33.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kcm.kubelet.cri import Resources
from kcm.kubelet.runtime.process import processes

NONE, V1, V2 = "rlimits", "cgroup-v1", "cgroup-v2"

_CONTROLLERS = ("memory", "pids", "cpu")
_REMOVAL = 2.0  # seconds; a group can be removed only a moment after its last process is gone


@dataclass(frozen=True)
class Cgroups:
    """The control groups of one kubelet.

    `kind` is NONE, V1 or V2. `bases` are the top groups by controller; in version 2 they are all
    the same folder.
    """

    kind: str
    bases: dict[str, Path]
    # Creating a group fails if the one above it is removed at the same moment.
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def make(self, path: str, resources: Resources) -> list[Path]:
        """Creates the group with that relative path and these limits, in every hierarchy.

        Returns the group's folders. Raises OSError.
        """
        groups = [base / path for base in self._distinct_bases()]
        with self._lock:
            for base, group in zip(self._distinct_bases(), groups, strict=True):
                self._descend(base, group)
        self.update(path, resources)
        return groups

    def update(self, path: str, resources: Resources) -> None:
        """Sets the limits of the group with that relative path. Raises OSError.

        A limit that is None stays as it is, and one below 0 is taken away.
        """
        settings = _v2(resources) if self.kind == V2 else _v1(resources)
        for controller, name, value in settings:
            if controller in self.bases:
                _write(self.bases[controller] / path / name, value)

    def share_out(self, path: str) -> None:
        """Gives a group the CPU shares that the groups below it have together. Raises OSError."""
        if (base := self.bases.get("cpu")) is None:
            return
        name, read = ("cpu.weight", shares) if self.kind == V2 else ("cpu.shares", int)
        texts = [processes.read(str(file)) for file in (base / path).glob(f"*/{name}")]
        total = sum(read(int(text)) for text in texts if text)
        self.update(path, Resources(cpu_shares=total))

    def remove(self, path: str) -> None:
        """Removes a group and those below it, then the empty ones above it up to our own top group.

        Kills the processes that are left in them. Gives up after _REMOVAL seconds.
        """
        for base in self._distinct_bases():
            remove_tree(base / path)
            with self._lock:
                for parent in (base / path).parents:
                    if not parent.is_relative_to(base) or not _remove_empty(parent):
                        break

    def paths(self, path: str) -> list[Path]:
        """Returns the folders of the group with that relative path, whether or not they exist."""
        return [base / path for base in self._distinct_bases()]

    @property
    def counts_processes(self) -> bool:
        """Whether the number of processes can be limited."""
        return "pids" in self.bases

    def _distinct_bases(self) -> list[Path]:
        return sorted(set(self.bases.values()))

    def _descend(self, base: Path, group: Path) -> None:
        group.mkdir(parents=True, exist_ok=True)
        if self.kind == V2:
            for parent in [*reversed(group.parents)]:
                if parent.is_relative_to(base):
                    _delegate(parent)


def detect(name: str, mounts: str | None = None, own: str | None = None) -> Cgroups:
    """Returns the control groups that this process can use, below one with this name.

    Without any, their kind is NONE. `mounts` and `own` replace /proc/self/mounts and
    /proc/self/cgroup in tests.
    """
    mounts = processes.read("/proc/self/mounts") if mounts is None else mounts
    own = processes.read("/proc/self/cgroup") if own is None else own
    places = dict(_read_own_places(own))
    points = list(list_mounts(mounts))
    for point, kind, _ in points:
        base = _base(point, places.get("", "/"), name, V2) if kind == "cgroup2" else None
        if base is not None:
            return Cgroups(V2, dict.fromkeys(_CONTROLLERS, base))
    bases: dict[str, Path] = {}
    for controller in (*_CONTROLLERS, "cpuacct"):
        for point, kind, options in points:
            if kind == "cgroup" and controller in options.split(","):
                base = _base(point, places.get(controller, "/"), name, V1)
                bases.update({controller: base} if base else {})
    return Cgroups(V1, bases) if "memory" in bases else Cgroups(NONE, {})


def list_mounts(mounts: str) -> Iterable[tuple[Path, str, str]]:
    """Yields mount point, kind and options of each hierarchy of control groups."""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[2] in ("cgroup", "cgroup2"):
            yield Path(fields[1]), fields[2], fields[3]


def _read_own_places(own: str) -> Iterable[tuple[str, str]]:
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _base(point: Path, place: str, name: str, kind: str) -> Path | None:
    """Returns the path for a group with that name where this process can create one.

    That is in its own group, or in the nearest one above it; None if there is none.
    """
    below = point / place.lstrip("/")
    for parent in (below, *below.parents):
        if not parent.is_relative_to(point):
            return None
        group = parent / name
        try:
            if kind == V2:
                _delegate(parent)
            group.mkdir(exist_ok=True)
            files = () if kind == V1 else ("memory.max", "pids.max")
            usable = all((group / file).exists() for file in files)
            _remove_empty(group)  # the first pod creates it again
            if usable:
                return group
        except OSError:
            continue
    return None


def _delegate(group: Path) -> None:
    wanted = {f"+{name}" for name in _CONTROLLERS}
    has = {f"+{name}" for name in processes.read(f"{group}/cgroup.subtree_control").split()}
    if wanted - has:
        _write(group / "cgroup.subtree_control", " ".join(sorted(wanted - has)))


def _v2(resources: Resources) -> Iterable[tuple[str, str, str]]:
    if resources.memory_bytes is not None:
        yield "memory", "memory.max", _amount(resources.memory_bytes)
        yield "memory", "memory.oom.group", "1"
    if resources.pids is not None:
        yield "pids", "pids.max", str(resources.pids)
    if resources.cpu_quota is not None:
        yield "cpu", "cpu.max", f"{_amount(resources.cpu_quota)} {resources.cpu_period}"
    if resources.cpu_shares is not None:
        yield "cpu", "cpu.weight", str(weight(resources.cpu_shares))


def _amount(limit: int) -> str:
    return "max" if limit < 0 else str(limit)


def _v1(resources: Resources) -> Iterable[tuple[str, str, str]]:
    if resources.memory_bytes is not None:
        yield "memory", "memory.limit_in_bytes", str(resources.memory_bytes)
    if resources.pids is not None:
        yield "pids", "pids.max", str(resources.pids)
    if resources.cpu_quota is not None:
        yield "cpu", "cpu.cfs_period_us", str(resources.cpu_period)
        yield "cpu", "cpu.cfs_quota_us", str(resources.cpu_quota)
    if resources.cpu_shares is not None:
        yield "cpu", "cpu.shares", str(max(resources.cpu_shares, 2))


def weight(shares: int) -> int:
    """Returns the weight of version 2 (1 to 10000) for the shares of version 1 (2 to 262144)."""
    return 1 + (min(max(shares, 2), 262_144) - 2) * 9999 // 262_142


def shares(weight_: int) -> int:
    """Returns the fewest shares of version 1 that a weight of version 2 stands for."""
    return 2 - (1 - weight_) * 262_142 // 9999


def _write(path: Path, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _remove_empty(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False
    return True


def remove_tree(group: Path) -> None:
    """Removes a group and those below it, and kills the processes in them.

    Gives up after _REMOVAL seconds.
    """
    until = time.monotonic() + _REMOVAL
    for folder, _, _ in os.walk(group, topdown=False):
        while True:
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                for pid in processes.members([folder]):
                    processes.kill(pid)
                if time.monotonic() > until:
                    return
                time.sleep(0.01)
