"""The options of a simulator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

from kcm import errors
from kcm.apimachinery.quantity import Quantity, parse
from kcm.simulation.scripting.behaviour import Pace

CAPACITY = "cpu=4,memory=16Gi,ephemeral-storage=100Gi,pods=110"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    """The options of a simulator. Times are in seconds.

    Raises ConfigurationError for invalid values.
    """

    count: int = 5
    zones: tuple[str, ...] = ("a", "b", "c")
    region: str = "local"
    name_prefix: str = "node-"
    capacity: Mapping[str, Quantity] = field(default_factory=lambda: parse_capacity(CAPACITY))
    # A kubelet's node lease lasts 40 s and is renewed every quarter of that.
    lease_duration: int = 40
    # How often an unchanged status is reported (nodeStatusReportFrequency).
    report_every: float = 300.0
    # How often nodes report usage (metrics-server's flag); 0: never.
    metric_resolution: float = 15.0
    pod_cidr: str = "10.64.0.0/10"  # for pods of nodes without a podCIDR
    node_cidr: str = "172.16.0.0/12"
    pace: Pace = field(default_factory=Pace)
    events: bool = True
    # whether nodes wait for the cloud-node controller, the kubelet's --cloud-provider=external
    external_cloud: bool = False
    # That of the node lifecycle controller, which commands print.
    monitor_grace_period: float = 50.0
    # how long a call to the simulated CSI driver takes
    storage_delay: float = 0.3
    # whether containers do what their commands say, as far as that is understood
    programs: bool = False
    # the key for the tokens that programs read, None if there are none
    signing_key_file: Path | None = None
    volume_limit: int = 16  # the volumes of the simulated CSI driver that a node can have

    def __post_init__(self) -> None:
        _require(self.count >= 0, "--count must not be negative")
        _require(bool(self.zones), "--zones must name at least one zone")
        for zone in (*self.zones, self.region):
            _require(bool(_LABEL.fullmatch(zone)) and len(zone) <= 63, f"{zone!r} is no zone name")
        _require(
            bool(_LABEL.fullmatch(self.name_prefix + "0")) and len(self.name_prefix) <= 50,
            f"--name-prefix {self.name_prefix!r} makes no node names",
        )
        _require(self.volume_limit >= 1, "--volume-attach-limit must be at least 1")
        _require(self.lease_duration >= 1, "--node-lease-duration-seconds must be at least 1")
        for flag, cidr in (("--pod-cidr", self.pod_cidr), ("--node-cidr", self.node_cidr)):
            _require(_is_network(cidr), f"{flag} {cidr!r} is no network, like 10.64.0.0/10")
        room = ip_network(self.node_cidr, strict=False).num_addresses - 2
        _require(self.count <= room, f"--node-cidr has {room} addresses for {self.count} nodes")

    @property
    def renew_every(self) -> float:
        """The seconds between two renewals of a lease."""
        return self.lease_duration / 4

    def names(self) -> list[str]:
        """Returns the names of the nodes, numbered from 1."""
        return [f"{self.name_prefix}{number}" for number in range(1, self.count + 1)]

    def zone_of(self, index: int) -> str:
        """Returns the zone of the node with this index, from 0. The zones take turns."""
        return self.zones[index % len(self.zones)]

    def address_of(self, index: int) -> str:
        """Returns the InternalIP of the node with this index."""
        return str(ip_network(self.node_cidr, strict=False)[index + 1])


def parse_capacity(text: str) -> dict[str, Quantity]:
    """Parses resources like `cpu=4,memory=16Gi,pods=110`. Missing resources have their defaults.

    Raises ConfigurationError.
    """
    given: dict[str, Quantity] = {}
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        try:
            given[name] = parse(amount)
        except ValueError as error:
            raise errors.ConfigurationError(f"--capacity {part.strip()!r}: {error}") from None
        if not equals or not name or given[name].sign() < 0:
            raise errors.ConfigurationError(f"--capacity {part.strip()!r} is not of the form cpu=4")
    return given if text == CAPACITY else {**parse_capacity(CAPACITY), **given}


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise errors.ConfigurationError(message)


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text
