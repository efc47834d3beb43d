"""The strategy of Services: which fields an update keeps, and which a change of type removes.

Source: pkg/registry/core/service/strategy.go and pkg/registry/core/service/storage/storage.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from kcm.api.core_v1 import Service, ServiceSpec
from kcm.store.strategies.base import Strategy


class ServiceStrategy(Strategy[Service]):
    """Services keep their allocated addresses and node ports."""

    def for_create(self, obj: Service) -> Service:
        return super().for_create(obj).with_spec(_with_cluster_ips(obj.spec))

    def for_update(self, new: Service, old: Service) -> Service:
        spec = _follow_cluster_ip(new.spec, old.spec)
        spec = _with_allocated(_without_stale(spec, old.spec), old.spec)
        return new.with_spec(_with_cluster_ips(spec))


def _with_cluster_ips(spec: ServiceSpec) -> ServiceSpec:
    """Sets `clusterIPs` to `clusterIP` if it is missing, for clients that know only `clusterIP`."""
    if spec.cluster_ip and not spec.cluster_ips:
        return spec.replace(cluster_ips=[spec.cluster_ip])
    return spec


def _follow_cluster_ip(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """Returns the spec with `clusterIPs` as a client that knows only `clusterIP` means it.

    Source: upstream's normalizeClusterIPs.
    """
    ips = new.cluster_ips
    if not ips and new.cluster_ip == old.cluster_ip:
        ips = old.cluster_ips
    if new.cluster_ip != old.cluster_ip and (ips or []) == (old.cluster_ips or []):
        ips = [new.cluster_ip] if new.cluster_ip else None
    return new if ips == new.cluster_ips else new.replace(cluster_ips=ips)


_ADDRESSED = ("ClusterIP", "NodePort", "LoadBalancer")
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def _without_stale(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """Returns the spec without values of the old type that the new type does not use.

    Values that the update changed are kept, and so left to validation. Source: upstream's
    dropTypeDependentFields.
    """
    changes: dict[str, Any] = {}
    if old.type in _ADDRESSED and new.type == "ExternalName":
        if (new.cluster_ip, new.cluster_ips) == (old.cluster_ip, old.cluster_ips):
            changes |= {"cluster_ip": None, "cluster_ips": None}
        if (new.ip_families, new.ip_family_policy) == (old.ip_families, old.ip_family_policy):
            changes |= {"ip_families": None, "ip_family_policy": None}
    if old.type in _WITH_NODE_PORTS and new.type not in _WITH_NODE_PORTS:
        changes |= _without_node_ports(new, old)
    if old.type == "LoadBalancer" != new.type:
        for field in ("load_balancer_class", "allocate_load_balancer_node_ports"):
            if getattr(new, field) == getattr(old, field):
                changes[field] = None
    return new.replace(**changes) if changes else new


def _without_node_ports(new: ServiceSpec, old: ServiceSpec) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if [port.node_port for port in new.ports or ()] == [p.node_port for p in old.ports or ()]:
        changes["ports"] = [port.replace(node_port=None) for port in new.ports or ()] or new.ports
    if new.external_traffic_policy == old.external_traffic_policy and not new.external_ips:
        changes["external_traffic_policy"] = None
    if new.health_check_node_port == old.health_check_node_port:
        changes["health_check_node_port"] = None
    return changes


def _with_allocated(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    changes: dict[str, Any] = {}
    kind = new.type or "ClusterIP"
    if kind in _ADDRESSED and old.type in _ADDRESSED and not new.cluster_ip:
        changes["cluster_ip"] = old.cluster_ip
        changes["cluster_ips"] = new.cluster_ips or old.cluster_ips
    if kind in _WITH_NODE_PORTS and old.type in _WITH_NODE_PORTS:
        changes["ports"] = _with_node_ports(new, old)
    if kind == old.type == "LoadBalancer" and not new.health_check_node_port:
        changes["health_check_node_port"] = old.health_check_node_port
    return new.replace(**changes) if changes else new


def _with_node_ports(new: ServiceSpec, old: ServiceSpec) -> list[Any] | None:
    given = {(port.protocol or "TCP", port.port): port.node_port for port in old.ports or ()}
    taken = {port.node_port for port in new.ports or ()}
    return [
        port
        if port.node_port
        or (port_before := given.get((port.protocol or "TCP", port.port))) in taken
        else port.replace(node_port=port_before)
        for port in new.ports or ()
    ] or new.ports
