"""Options of the process runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kcm.kubelet.runtime.process.addresses import shared_folder


@dataclass(frozen=True)
class ProcessOptions:
    """Folders, limits and permissions of the process runtime. Sizes are in bytes."""

    root: Path  # holds everything on disk; only one kubelet may use it
    host_ip: str = "127.0.0.1"
    own_addresses: bool = True  # from 127.64.0.0/10, where the machine answers on it
    addresses: Path = field(default_factory=shared_folder)
    container_log_max_size: int = 10 * 1024 * 1024
    container_log_max_files: int = 5
    use_cgroups: bool = True
    pod_max_pids: int | None = None  # processes and threads of a pod; None is no limit
    # Whether this process adopts what dead supervisors leave; only for one that is just a kubelet.
    adopts_orphans: bool = False
    # Inclusive ranges of user ids that runAsUser may name, apart from the kubelet's own.
    allowed_users: tuple[tuple[int, int], ...] = ()
    # Inclusive ranges for runAsGroup and supplementalGroups, apart from the user's own group.
    allowed_groups: tuple[tuple[int, int], ...] = ()

    def allows_user(self, uid: int, own: int) -> bool:
        """Reports whether a container may run as that user. `own` is the kubelet's user id."""
        return uid == own or any(low <= uid <= high for low, high in self.allowed_users)

    def allows_group(self, gid: int) -> bool:
        """Reports whether a container may have that group, whichever user it runs as."""
        return any(low <= gid <= high for low, high in self.allowed_groups)
