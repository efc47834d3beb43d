"""Conflicts of host ports."""

from __future__ import annotations

import pytest

from kcm.kubelet.cri import PortMapping
from kcm.kubelet.host_ports import find_conflict


def port(number: int, ip: str = "", protocol: str = "TCP") -> PortMapping:
    return PortMapping(container_port=80, host_port=number, protocol=protocol, host_ip=ip)


@pytest.mark.parametrize(
    ("wanted", "taken", "clashes"),
    [
        (port(80), port(80), True),
        (port(80), port(81), False),
        (port(0), port(0), False),
        (port(80), port(80, protocol="UDP"), False),
        (port(80, "127.0.0.1"), port(80, "127.0.0.1"), True),
        (port(80, "127.0.0.1"), port(80, "127.0.0.2"), False),
        (port(80, "127.0.0.1"), port(80, "0.0.0.0"), True),
        (port(80, "0.0.0.0"), port(80, "127.0.0.1"), True),
        (port(80, ""), port(80, "127.0.0.1"), True),
    ],
)
def test_a_port_belongs_to_one_pod_per_address(
    wanted: PortMapping, taken: PortMapping, clashes: bool
) -> None:
    assert find_conflict([port(1), wanted], [taken]) == (wanted if clashes else None)
