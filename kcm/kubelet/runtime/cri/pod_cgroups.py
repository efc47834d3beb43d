"""The control groups of pods, below which a container runtime makes those of containers.

A pod's group limits its number of processes, and what its containers may use together. The runtime
makes the group in the hierarchies that are not limited here, and removes only groups of containers:
empty ones of the pod are removed here, in every hierarchy.

Source: pkg/kubelet/cm/pod_container_manager_linux.go, Kubernetes 1.36. Departure: there are no
groups for the quality-of-service classes between the top and the pods.
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
        # The pods that groups were made for: the runtime may be about to make some in the top one.
        self._used: set[str] = set()

    @property
    def kind(self) -> str:
        """How limits are enforced: "cgroup-v2", "cgroup-v1" or "rlimits"."""
        return self._groups.kind

    def parent(self, uid: str) -> str:
        """Returns the name of a pod's group for the runtime."""
        if self._driver == SYSTEMD:
            return f"{self._name}-pod{uid.replace('-', '_')}.slice"
        return f"/{self._name}/pod{uid}"

    def make(self, uid: str, resources: Resources) -> None:
        """Makes a pod's group with its limits. Raises ContainerRuntimeError."""
        if self._driver == SYSTEMD:
            return
        with self._lock:
            self._used.add(uid)
        try:
            self._groups.make(f"pod{uid}", replace(resources, pids=self._pids))
        except OSError as error:
            raise errors.ContainerRuntimeError(
                f"failed to create the pod's cgroup: {error}"
            ) from error

    def list_uids(self) -> set[str]:
        """Returns the uids of pods that have a group in some hierarchy."""
        tops = [point / self._name for point, _, _ in self._list_mounts()]
        return {group.name[3:] for top in tops for group in top.glob("pod*") if group.is_dir()}

    def remove(self, uid: str) -> None:
        """Removes a pod's group, and the top one after the last pod. Processes in it are killed."""
        if self._driver == SYSTEMD:
            return
        tops = [point / self._name for point, _, _ in self._list_mounts()]
        for top in tops:
            cgroups.remove_tree(top / f"pod{uid}")
        with self._lock:
            self._used.discard(uid)
            for top in () if self._used else tops:
                with suppress(OSError):  # pods of an earlier start may be in it
                    top.rmdir()

    def _list_mounts(self) -> list[tuple[Path, str, str]]:
        return list(cgroups.list_mounts(processes.read("/proc/self/mounts")))
