"""The capabilities of a container's processes, and whether the kubelet can give and take them.

A mask has a bit for each capability, by the kernel's numbers.

Source: WithCapabilities in containerd's internal/cri/opts/spec_opts.go; the default set is that of
moby's daemon/pkg/oci/caps/defaults.go. Departure: what cannot be had is refused, not left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from kcm.errors import ContainerConfigError
from kcm.kubelet.cri import ContainerConfig
from kcm.kubelet.runtime.process import processes

# In the order of the kernel's numbers, from linux/capability.h.
_NAMES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
    "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
    "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
    "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD",
    "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
    "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip
_BITS = {name: 1 << number for number, name in enumerate(_NAMES)}
_ALL = "ALL"


def build_mask(names: Iterable[str]) -> int:
    """Returns the mask of capabilities. Unknown names and ALL have no bit in it."""
    mask = 0
    for name in names:
        mask |= _BITS.get(name, 0)
    return mask


DEFAULT = build_mask(
    ("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID",
     "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE")
)  # fmt: skip
"""The capabilities of a container that says nothing about them."""


def read_available() -> int:
    """Returns the mask of what this process can give to containers.

    That is its bounding set if it is root, and nothing otherwise.
    """
    if os.geteuid() != 0:
        return 0
    for line in processes.read("/proc/self/status").splitlines():
        name, _, value = line.partition(":")
        if name == "CapBnd":
            return int(value, 16)
    return 0


def find_kept_capabilities(config: ContainerConfig, available: int) -> int:
    """Returns the mask of the capabilities that the container's processes can have.

    `available` is the mask of what the kubelet can give. Those of a process that is not root are
    fewer: it has none, and gets them from programs with file capabilities or of root's (setuid).
    """
    if config.privileged:
        return available
    added, dropped = _normalize(config.add_capabilities), _normalize(config.drop_capabilities)
    kept = available if _ALL in added else DEFAULT
    if _ALL in dropped:
        kept = 0
    return (kept | build_mask(added)) & ~build_mask(dropped) & available


def _normalize(names: Iterable[str]) -> list[str]:
    return [name.upper().removeprefix("CAP_") for name in names]


def check(config: ContainerConfig, available: int, *, root: bool) -> None:
    """Checks that the container can have the capabilities that it asks for, and none but those.

    `available` is as in `find_kept_capabilities`, `root` says whether the kubelet is root. Raises
    ContainerConfigError.
    """
    if config.privileged and not root:
        raise ContainerConfigError(
            f"container {config.name} wants to be privileged, "
            "which only a kubelet that runs as root can allow"
        )
    added = _normalize(config.add_capabilities)
    if unknown := sorted({*added} - {_ALL, *_BITS}):
        raise ContainerConfigError(
            f"container {config.name} wants unknown capabilities: {', '.join(unknown)}"
        )
    if added and not root:
        raise ContainerConfigError(
            f"container {config.name} wants more capabilities ({', '.join(added)}), "
            "which only a kubelet that runs as root can give"
        )
    missing = [name for name in added if name != _ALL and not _BITS[name] & available]
    if missing:
        raise ContainerConfigError(
            f"container {config.name} wants capabilities that the kubelet itself does not have: "
            f"{', '.join(missing)}"
        )
    if available & ~find_kept_capabilities(config, available) and not _BITS["SETPCAP"] & available:
        raise ContainerConfigError(
            f"container {config.name} must not have all of the kubelet's capabilities, "
            "and the kubelet cannot take any (it lacks SETPCAP)"
        )
