"""The control groups of pods, below which a container runtime makes those of containers.

A pod's group limits its number of processes, and what its containers may use together. The runtime
makes the group in the hierarchies that are not limited here, and removes only groups of containers:
empty ones of the pod are removed here, in every hierarchy.

Pods are in the group of their quality-of-service class, but Guaranteed ones in the top one. Where
the CPU is short, that of Burstable pods has their shares together, that of BestEffort pods 2.

Source: pkg/kubelet/cm/{pod,qos}_container_manager_linux.go, Kubernetes 1.36.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kcm import errors
from kcm.kubelet.cri import Resources
from kcm.kubelet.options import SYSTEMD
from kcm.kubelet.runtime.process import cgroups, processes

_BEST_EFFORT = "besteffort"
_CLASSES = ("burstable", _BEST_EFFORT)
_ANY_PLACE = "0::/"  # groups are below the root of each hierarchy, where the runtime makes them


class PodCgroups:
    """Makes and removes the groups of pods. Thread-safe."""

    def __init__(self, name: str, driver: str, pod_max_pids: int | None) -> None:
        """`name` is the top group. With the driver systemd, slices are left to systemd."""
        self._name = name
        self._driver = driver
        self._pids = pod_max_pids
        self._groups = cgroups.detect(name, own=_ANY_PLACE)
        self._lock = threading.Lock()
        self._sharing = threading.Lock()
        # The pods that groups were made for: the runtime may be about to make some in the top one.
        self._used: set[str] = set()

    @property
    def kind(self) -> str:
        """How limits are enforced: "cgroup-v2", "cgroup-v1" or "rlimits"."""
        return self._groups.kind

    def parent(self, uid: str, qos_class: str) -> str:
        """Returns the name of a pod's group for the runtime.

        `qos_class` is the group of the pod's quality-of-service class, "" for the top one.
        """
        if self._driver == SYSTEMD:
            words = [self._name, *([qos_class] if qos_class else []), f"pod{uid.replace('-', '_')}"]
            return f"{'-'.join(words)}.slice"
        return f"/{self._name}/{_join(uid, qos_class)}"

    def make(self, uid: str, qos_class: str, resources: Resources) -> None:
        """Makes a pod's group with its limits. Raises ContainerRuntimeError."""
        if self._driver == SYSTEMD:
            return
        with self._lock:
            self._used.add(uid)
        try:
            self._groups.make(_join(uid, qos_class), replace(resources, pids=self._pids))
            self._share_out()
        except OSError as error:
            raise errors.ContainerRuntimeError(
                f"failed to create the pod's cgroup: {error}"
            ) from error

    def update(self, uid: str, qos_class: str, resources: Resources) -> None:
        """Gives a pod's group other limits. One that is None is taken away.

        Raises ContainerRuntimeError.
        """
        if self._driver == SYSTEMD:
            return
        memory, quota = resources.memory_bytes, resources.cpu_quota
        whole = replace(
            resources,
            memory_bytes=-1 if memory is None else memory,
            cpu_quota=-1 if quota is None else quota,
        )
        try:
            self._groups.update(_join(uid, qos_class), whole)
            self._share_out()
        except OSError as error:
            raise errors.ContainerRuntimeError(
                f"failed to change the pod's cgroup: {error}"
            ) from error

    def _share_out(self) -> None:
        """Gives the groups of classes the CPU shares of their pods. Raises OSError."""
        with self._sharing:
            for qos_class in _CLASSES:
                if not all(group.is_dir() for group in self._groups.paths(qos_class)):
                    continue
                if qos_class == _BEST_EFFORT:
                    self._groups.update(qos_class, Resources(cpu_shares=2))
                else:
                    self._groups.share_out(qos_class)

    def list_uids(self) -> set[str]:
        """Returns the uids of pods that have a group in some hierarchy."""
        return {group.name[3:] for top in self._list_parents() for group in top.glob("pod*")}

    def remove(self, uid: str) -> None:
        """Removes a pod's group, and the top one after the last pod. Processes in it are killed."""
        if self._driver == SYSTEMD:
            return
        parents = self._list_parents()
        for parent in parents:
            cgroups.remove_tree(parent / f"pod{uid}")
        with self._lock:
            self._used.discard(uid)
            with suppress(OSError):  # the next pod does it
                self._share_out()
            for parent in () if self._used else parents:
                with suppress(OSError):  # pods of an earlier start may be in it
                    parent.rmdir()

    def _list_parents(self) -> list[Path]:
        """Returns the groups that those of pods are in, in every hierarchy, the top ones last."""
        mounts = cgroups.list_mounts(processes.read("/proc/self/mounts"))
        tops = [point / self._name for point, _, _ in mounts]
        return [*(top / qos_class for top in tops for qos_class in _CLASSES), *tops]


def _join(uid: str, qos_class: str) -> str:
    return f"{qos_class}/pod{uid}" if qos_class else f"pod{uid}"
