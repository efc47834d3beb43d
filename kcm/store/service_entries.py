"""The index entries by which Services hold cluster IPs and node ports."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from kcm.api.core_v1 import Service

HEADLESS = "None"


def entries(service: Service) -> Sequence[str]:
    """What a Service holds, each once."""
    spec = service.spec
    if spec.type == "ExternalName":
        return ()
    ips = [ip_entry(ip) for ip in spec.cluster_ips or () if ip and ip != HEADLESS]
    numbers = [port.node_port for port in spec.ports or ()]
    ports = [port_entry(number) for number in (*numbers, spec.health_check_node_port) if number]
    return tuple(dict.fromkeys([*ips, *ports]))


def ip_entry(ip: str) -> str:
    """Of a cluster IP; of one address always the same, however it is written."""
    try:
        return f"clusterip:{ipaddress.ip_address(ip)}"
    except ValueError:
        return f"clusterip:{ip}"


def port_entry(number: int) -> str:
    """Of a node port; as upstream, one for all protocols."""
    return f"nodeport:{number}"
