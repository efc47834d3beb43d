"""Conflicts between the host ports of pods.

Source: HostPortInfo.CheckConflict in pkg/scheduler/framework/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm.kubelet.cri import PortMapping

_ANY_ADDRESS = ("", "0.0.0.0")


def find_conflict(
    requested: Iterable[PortMapping], used: Sequence[PortMapping]
) -> PortMapping | None:
    """Returns the first of the requested ports that is in use already, or None.

    A port on all addresses conflicts with the same port on each address.
    """
    for mapping in requested:
        if mapping.host_port and any(_conflicts(mapping, other) for other in used):
            return mapping
    return None


def _conflicts(mapping: PortMapping, other: PortMapping) -> bool:
    if (mapping.host_port, mapping.protocol) != (other.host_port, other.protocol):
        return False
    if mapping.host_ip in _ANY_ADDRESS or other.host_ip in _ANY_ADDRESS:
        return True
    return mapping.host_ip == other.host_ip
