"""Allocates cluster IPs and node ports to Services.

Guarantees: no two Services have the same cluster IP or node port, however many are created at the
same time. What a Service has is free when it is gone. Both follow from the index entries of
Services: a write that adds an entry is refused when another object has it. In addition, each
cluster IP has an IPAddress (`kcm.store.claims`), and is in the range of a ServiceCIDR
(`cluster_ips`).

Source: pkg/registry/core/service/storage/alloc.go, pkg/registry/core/service/ipallocator and
pkg/registry/core/service/portallocator, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kcm import errors
from kcm.api.core_v1 import Service, ServicePort, ServiceSpec
from kcm.redisio import RedisIO
from kcm.store.admission.cluster_ips import ClusterIPs
from kcm.store.service_entries import IP_PREFIX, entries, ip_entry, port_entry
from kcm.store.writes.guards import Guard, Unindexed

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_WITH_IP = ("ClusterIP", "NodePort", "LoadBalancer")
_DUAL_STACK = "RequireDualStack"
_DRAWS = 64  # candidates that are looked up together
_ROUNDS = 8  # such look-ups in a large band before it counts as full


@dataclass(frozen=True)
class Ranges:
    """The range of cluster IPs and the range of node ports."""

    network: _Network
    first_port: int
    last_port: int

    @classmethod
    def parse(cls, network: str, ports: str) -> Ranges:
        """Returns the ranges of the settings. Raises: ConfigurationError."""
        try:
            first, last = (int(part) for part in ports.split("-"))
            ranges = cls(ipaddress.ip_network(network), first, last)
        except ValueError as error:
            raise errors.ConfigurationError(
                f"KCM_SERVICE_CLUSTER_IP_RANGE or KCM_SERVICE_NODE_PORT_RANGE: {error}"
            ) from None
        if not 0 < first <= last < 65536 or ranges.network.num_addresses < 8:
            raise errors.ConfigurationError(
                "KCM_SERVICE_CLUSTER_IP_RANGE must have 8 addresses or more and "
                "KCM_SERVICE_NODE_PORT_RANGE must be like 30000-32767"
            )
        return ranges

    @property
    def family(self) -> str:
        """The IP family of the addresses: IPv4 or IPv6."""
        return f"IPv{self.network.version}"

    @property
    def first_ip(self) -> str:
        """The cluster IP of the Service `kubernetes`."""
        return str(self.network[1])

    def port_bands(self) -> list[range]:
        """Returns the node ports to allocate, in bands as `ip_bands`."""
        size = self.last_port - self.first_port + 1
        low = min(max(16, size // 32), 128)
        whole = range(self.first_port, self.last_port + 1)
        return [whole[low:], whole[:low]] if low < size else [whole]


class ServiceAddresses:
    """Allocates cluster IPs and node ports to Services."""

    def __init__(
        self, io: RedisIO, ranges: Ranges, cluster_ips: ClusterIPs, rng: random.Random
    ) -> None:
        self._io = io
        self.ranges = ranges
        self._cluster_ips = cluster_ips
        self._rng = rng

    def assign(self, new: Service, old: Service | None = None) -> tuple[Service, tuple[Guard, ...]]:
        """Returns the Service with the addresses that it lacks, and guards that no other Service
        has them.

        Raises: Invalid for an address that is in use or out of range, ApiError when a range is
        full.
        """
        self._require_families(new, old)
        held = frozenset(entries(old)) if old is not None else frozenset()
        spec = self._with_ip(new.spec)
        spec = self._with_ports(spec)
        assigned = new if spec is new.spec else new.with_spec(spec)
        claimed = [entry for entry in entries(assigned) if entry not in held]
        asked = frozenset(entries(new))
        self._require_free([entry for entry in claimed if entry in asked], new)
        return assigned, tuple(Unindexed(entry) for entry in claimed)

    # --- cluster IPs

    def _require_families(self, new: Service, old: Service | None) -> None:
        """Raises Invalid for a Service that asks for two IP families, of which kcm has one.

        As upstream, a headless Service without a selector may have both, since it gets no address.
        One that was stored so before may still be changed.
        """
        spec = new.spec
        is_manual = spec.cluster_ip == "None" and not spec.selector
        asked_before = old is not None and old.spec.ip_family_policy == _DUAL_STACK
        if spec.ip_family_policy != _DUAL_STACK or spec.type not in _WITH_IP or is_manual:
            return
        if not asked_before:
            why = "this cluster is not configured for dual-stack services"
            fault = errors.FieldError("Invalid value", "spec.ipFamilyPolicy", _DUAL_STACK, why)
            raise errors.Invalid([fault], kind="Service", name=new.name, resource="services")

    def _with_ip(self, spec: ServiceSpec) -> ServiceSpec:
        if spec.type not in _WITH_IP:
            return spec
        families: dict[str, Any] = {}
        family = spec.ip_families[0] if spec.ip_families else self.ranges.family
        if not spec.ip_families:
            families["ip_families"] = [family]
        if spec.ip_family_policy is None:
            families["ip_family_policy"] = "SingleStack"
        if not spec.cluster_ip:
            ip = self._draw_ip(family)
            families |= {"cluster_ip": ip, "cluster_ips": [ip]}
        return spec.replace(**families) if families else spec

    def _draw_ip(self, family: str) -> str:
        """Returns a free address of the first range that has one."""
        for network in self._cluster_ips.networks(family):
            for band in ip_bands(network):
                for candidates in self._candidates(band):
                    ips = [str(network[offset]) for offset in candidates]
                    free = self._cluster_ips.are_free(ips)
                    free_ip = next(
                        (ip for ip, is_free in zip(ips, free, strict=True) if is_free), ""
                    )
                    if free_ip:
                        return free_ip
        raise _full("serviceIP")

    # --- node ports

    def _with_ports(self, spec: ServiceSpec) -> ServiceSpec:
        changes: dict[str, Any] = {}
        if _wants_node_ports(spec) and any(not port.node_port for port in spec.ports or ()):
            changes["ports"] = self._ports(spec.ports or [])
        local = spec.type == "LoadBalancer" and spec.external_traffic_policy == "Local"
        if local and not spec.health_check_node_port:
            taken = [port.node_port for port in changes.get("ports", spec.ports) or ()]
            changes["health_check_node_port"] = self._port(taken)
        return spec.replace(**changes) if changes else spec

    def _ports(self, ports: Sequence[ServicePort]) -> list[ServicePort]:
        """Returns the ports with node ports. Entries with the same port and other protocols share
        one.
        """
        taken = [port.node_port for port in ports if port.node_port]
        shared: dict[int, int] = {p.port: p.node_port for p in ports if p.node_port}
        protocols = {port.node_port: {port.protocol} for port in ports if port.node_port}
        assigned = []
        for port in ports:
            number = port.node_port or shared.get(port.port)
            if not port.node_port and number and port.protocol in protocols.get(number, ()):
                number = None
            if not number:
                number = self._port(taken)
                taken.append(number)
            shared.setdefault(port.port, number)
            protocols.setdefault(number, set()).add(port.protocol)
            assigned.append(port.replace(node_port=number))
        return assigned

    def _port(self, taken: Iterable[int | None]) -> int:
        in_use = frozenset(taken)
        for band in self.ranges.port_bands():
            for candidates in self._candidates(band):
                fit = [number for number in candidates if number not in in_use]
                free = self._are_free([port_entry(number) for number in fit])
                for number, is_free in zip(fit, free, strict=True):
                    if is_free:
                        return number
        raise _full("nodePort")

    # --- both

    def _candidates(self, band: range) -> Iterator[Sequence[int]]:
        """Yields all of a small band in a random order, or samples of a large one."""
        if len(band) > _DRAWS * _ROUNDS * 8:
            for _ in range(_ROUNDS):
                yield self._rng.sample(band, _DRAWS)
            return
        shuffled = self._rng.sample(band, len(band))
        for start in range(0, len(shuffled), _DRAWS):
            yield shuffled[start : start + _DRAWS]

    def _are_free(self, wanted: Sequence[str]) -> list[bool]:
        keys = self._io.keys
        commands = [("SCARD", keys.index(entry)) for entry in wanted]
        return [count == 0 for count in (self._io.pipeline(commands) if commands else [])]

    def _require_free(self, asked: Sequence[str], service: Service) -> None:
        """Raises Invalid for addresses that another Service has or that are out of range."""
        faults = [*self._outside(service, frozenset(asked))]
        free = self._are_free(asked)
        ips = [entry.removeprefix(IP_PREFIX) for entry in asked if entry.startswith(IP_PREFIX)]
        unnamed = dict(zip(ips, self._cluster_ips.are_unnamed(ips), strict=True))
        for entry, is_free in zip(asked, free, strict=True):
            if not (is_free and unnamed.get(entry.removeprefix(IP_PREFIX), True)):
                faults.append(_report_taken(service, entry))
        if faults:
            raise errors.Invalid(faults, kind="Service", name=service.name, resource="services")

    def _outside(self, service: Service, asked: frozenset[str]) -> Iterator[errors.FieldError]:
        spec, ranges = service.spec, self.ranges
        for ip in spec.cluster_ips or ():
            if ip_entry(ip) not in asked:
                continue
            parsed = ipaddress.ip_address(ip)
            networks = self._cluster_ips.networks(f"IPv{parsed.version}")
            if not any(parsed in network for network in networks):
                valid_ips = ", ".join(map(str, networks or [ranges.network]))
                why = (
                    f"failed to allocate IP {ip}: the provided IP ({ip}) is not in the valid "
                    f"range. The range of valid IPs is {valid_ips}"
                )
                yield errors.FieldError("Invalid value", "spec.clusterIPs", [ip], why)
        valid = range(ranges.first_port, ranges.last_port + 1)
        for index, port in enumerate(spec.ports or ()):
            number = port.node_port
            if number and number not in valid and port_entry(number) in asked:
                why = (
                    "provided port is not in the valid range. The range of valid ports is "
                    f"{ranges.first_port}-{ranges.last_port}"
                )
                path = f"spec.ports[{index}].nodePort"
                yield errors.FieldError("Invalid value", path, number, why)


def ip_bands(network: _Network) -> list[range]:
    """Returns the offsets to allocate, by band: the upper band first, as users choose from the
    lower.
    """
    size = min(network.num_addresses - 1, 1 << 16 if network.version == 6 else 1 << 32)
    low = min(max(16, size // 16), 256)
    return [range(low, size), range(2, low)] if low < size else [range(2, size)]


def _full(what: str) -> errors.ApiError:
    return errors.ApiError(f"Internal error occurred: failed to allocate a {what}: range is full")


def _wants_node_ports(spec: ServiceSpec) -> bool:
    if spec.type == "LoadBalancer":
        return spec.allocate_load_balancer_node_ports is not False
    return spec.type == "NodePort"


def _report_taken(service: Service, entry: str) -> errors.FieldError:
    """Returns the fault of an address or port that another Service has."""
    spec = service.spec
    for ip in spec.cluster_ips or ():
        if ip_entry(ip) == entry:
            why = f"failed to allocate IP {ip}: provided IP is already allocated"
            return errors.FieldError("Invalid value", "spec.clusterIPs", [ip], why)
    why = "provided port is already allocated"
    for index, port in enumerate(spec.ports or ()):
        if port.node_port and port_entry(port.node_port) == entry:
            path = f"spec.ports[{index}].nodePort"
            return errors.FieldError("Invalid value", path, port.node_port, why)
    path = "spec.healthCheckNodePort"
    return errors.FieldError("Invalid value", path, spec.health_check_node_port, why)
