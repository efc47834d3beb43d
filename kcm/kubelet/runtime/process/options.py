"""Options of the process runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kcm.kubelet.runtime.process.addresses import shared_folder


@dataclass(frozen=True)
class ProcessOptions:
    """Folders, limits and permissions. Sizes are bytes."""

    root: Path  # of everything it keeps; one kubelet's own
    host_ip: str = "127.0.0.1"
    own_addresses: bool = True  # pods get 127.64.0.0/10 where the machine answers on it
    addresses: Path = field(default_factory=shared_folder)
    container_log_max_size: int = 10 * 1024 * 1024
    container_log_max_files: int = 5
    use_cgroups: bool = True
    pod_max_pids: int | None = None  # processes and threads of a pod; None: no limit
    # This process is a kubelet and nothing else: what supervisors leave becomes its own to end.
    adopts_orphans: bool = False
    # Inclusive ranges of user ids beside the kubelet's own, which runAsUser may name.
    allowed_users: tuple[tuple[int, int], ...] = ()
    # The same of groups, beside the user's own, for runAsGroup and supplementalGroups.
    allowed_groups: tuple[tuple[int, int], ...] = ()

    def allows_user(self, uid: int, own: int) -> bool:
        """Reports whether a container may run as that user; `own` is the kubelet's."""
        return uid == own or any(low <= uid <= high for low, high in self.allowed_users)

    def allows_group(self, gid: int) -> bool:
        """Reports whether a container may have that group, whoever it runs as."""
        return any(low <= gid <= high for low, high in self.allowed_groups)
