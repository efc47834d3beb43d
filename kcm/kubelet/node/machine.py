"""Reads the machine's capacity and identity for the node status.

Source: pkg/kubelet/nodestatus/setters.go (MachineInfo, VersionInfo, GoRuntime), Kubernetes 1.33.
"""

from __future__ import annotations

import os
import platform
import shutil
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

from kcm import KUBERNETES_VERSION, __version__
from kcm.api.core_v1 import NodeSystemInfo
from kcm.apimachinery.quantity import Quantity
from kcm.clock import Clock

KUBELET_VERSION = f"v{KUBERNETES_VERSION}-kcm.{__version__}"
MAX_AGE = 10.0  # seconds
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


@dataclass(frozen=True)
class MachineInfo:
    """The machine's capacity and identity. Memory and disk are in bytes."""

    cpus: int
    memory: int
    disk: int
    system: NodeSystemInfo

    def capacity(self, max_pods: int) -> dict[str, Quantity]:
        """Returns the node's capacity of each resource."""
        return {
            "cpu": Quantity(self.cpus),
            "memory": Quantity(f"{self.memory // 1024}Ki"),
            "ephemeral-storage": Quantity(f"{self.disk // 1024}Ki"),
            "pods": Quantity(max_pods),
        }


class MachineReader:
    """Reads the machine's info, at most once in MAX_AGE seconds. Thread-safe."""

    def __init__(self, root_dir: Path, runtime_version: str, clock: Clock) -> None:
        self._root_dir = root_dir
        self._runtime_version = runtime_version
        self._clock = clock
        self._lock = threading.Lock()
        self._last: tuple[float, MachineInfo] | None = None

    def read(self) -> MachineInfo:
        """Returns the machine's info, which is at most MAX_AGE seconds old."""
        with self._lock:
            now = self._clock.monotonic()
            if self._last is None or now - self._last[0] > MAX_AGE:
                self._last = (now, read_machine(self._root_dir, self._runtime_version))
            return self._last[1]


def read_machine(root_dir: Path, runtime_version: str) -> MachineInfo:
    """Returns this machine's info. Its disk is the file system of `root_dir`.

    `runtime_version` is the container runtime's name and version, like `process://0.2.0`.
    """
    kernel = platform.uname()
    return MachineInfo(
        cpus=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        disk=shutil.disk_usage(root_dir).total,
        system=NodeSystemInfo(
            machine_id=_read_file("/etc/machine-id") or f"{uuid.getnode():032x}",
            system_uuid=_read_file("/sys/class/dmi/id/product_uuid")
            or str(uuid.UUID(int=uuid.getnode())),
            boot_id=_read_file("/proc/sys/kernel/random/boot_id"),
            kernel_version=kernel.release,
            os_image=_read_os_image(),
            container_runtime_version=runtime_version,
            kubelet_version=KUBELET_VERSION,
            kube_proxy_version="",
            operating_system=kernel.system.lower(),
            architecture=go_architecture(),
        ),
    )


def go_architecture() -> str:
    """Returns the machine's architecture under Go's name, like `amd64`."""
    name = platform.machine()
    return _GO_ARCHITECTURES.get(name, name)


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return ""


def _read_os_image() -> str:
    for line in _read_file("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"')
    return platform.system()
