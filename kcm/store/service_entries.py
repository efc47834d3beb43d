"""The index entries by which Services reserve cluster IPs and node ports."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from kcm.api.core_v1 import Service

HEADLESS = "None"
IP_PREFIX = "clusterip:"  # of the index entries of cluster IPs


def entries(service: Service) -> Sequence[str]:
    """Returns the index entries of the addresses and ports that a Service has, each once."""
    spec = service.spec
    if spec.type == "ExternalName":
        return ()
    ips = [ip_entry(ip) for ip in spec.cluster_ips or () if ip and ip != HEADLESS]
    numbers = [port.node_port for port in spec.ports or ()]
    ports = [port_entry(number) for number in (*numbers, spec.health_check_node_port) if number]
    return tuple(dict.fromkeys([*ips, *ports]))


def ip_entry(ip: str) -> str:
    """Returns the index entry of a cluster IP. It is the same for all spellings of an address."""
    try:
        return f"{IP_PREFIX}{ipaddress.ip_address(ip)}"
    except ValueError:
        return f"{IP_PREFIX}{ip}"


def port_entry(number: int) -> str:
    """Returns the index entry of a node port, which counts for all protocols, as upstream."""
    return f"nodeport:{number}"
