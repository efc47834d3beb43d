"""Which host ports exclude each other.

Source: pkg/scheduler/framework HostPortInfo.CheckConflict, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm.kubelet.cri import PortMapping

_ANY = ("", "0.0.0.0")


def clash(wanted: Iterable[PortMapping], taken: Sequence[PortMapping]) -> PortMapping | None:
    """The first wanted port that another pod has; a port of any address clashes with each."""
    for mapping in wanted:
        if mapping.host_port and any(_same(mapping, other) for other in taken):
            return mapping
    return None


def _same(one: PortMapping, other: PortMapping) -> bool:
    if (one.host_port, one.protocol) != (other.host_port, other.protocol):
        return False
    return one.host_ip in _ANY or other.host_ip in _ANY or one.host_ip == other.host_ip
