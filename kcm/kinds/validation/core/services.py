"""Validation of Services.

Cluster IPs and node ports may be empty here: the store allocates them later
(`kcm.store.admission.service_addresses`).

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm.api.core_v1 import EndpointPort, Service, ServicePort, ServiceSpec
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    one_of,
    require_unchanged,
    required,
)
from kcm.kinds.defaults.services import is_externally_accessible
from kcm.kinds.validation import addresses, meta
from kcm.kinds.validation.core.service_addresses import (
    cluster_ips,
    external_ips,
    kept_addresses,
    source_ranges,
)
from kcm.kinds.validation.podspec.containers import PROTOCOLS
from kcm.kinds.validation.podspec.handlers import port_number, port_or_name

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_MAX_AFFINITY_SECONDS = 86400
_ONLY_LOAD_BALANCERS = "may only be used when `type` is 'LoadBalancer'"


def create(service: Service) -> Faults:
    faults = meta.metadata(service, namespaced=True, name_rule=names.label_faults)
    return faults + _service(service, None)


def update(new: Service, old: Service) -> Faults:
    faults = meta.metadata_update(new, old) + kept_addresses(new.spec, old.spec)
    if new.spec.type == old.spec.type == "LoadBalancer":
        path = "spec.loadBalancerClass"
        faults += [
            invalid(path, fault.value, "may not change once set")
            for fault in require_unchanged(
                path, new.spec.load_balancer_class, old.spec.load_balancer_class
            )
        ]
    return faults + _service(new, old)


def status_update(new: Service, old: Service) -> Faults:
    faults = meta.metadata_update(new, old)
    stored = {ingress.ip for ingress in old.status.load_balancer.ingress or () if ingress.ip}
    for index, ingress in enumerate(new.status.load_balancer.ingress or ()):
        path = f"status.loadBalancer.ingress[{index}]"
        if ingress.ip:
            faults += addresses.address(ingress.ip, f"{path}.ip", stored)
        if ingress.ip_mode:
            faults += one_of(f"{path}.ipMode", ingress.ip_mode, ("Proxy", "VIP"))
            if not ingress.ip:
                detail = "may not be specified when `ip` is not set"
                faults.append(forbidden(f"{path}.ipMode", detail))
        if ingress.hostname:
            faults += _host_name(ingress.hostname, f"{path}.hostname")
    return faults


def _host_name(name: str, path: str) -> Faults:
    faults = invalid_all(path, name, names.subdomain_faults(name))
    if addresses.parse(name):
        faults.append(invalid(path, name, "must be a DNS name, not an IP address"))
    return faults


def _service(service: Service, old: Service | None) -> Faults:
    spec, stored = service.spec, old.spec if old else ServiceSpec()
    return [
        *_topology(service.annotations),
        *_type(spec),
        *_ports(spec),
        *metadata_checks.labels(spec.selector, "spec.selector"),
        *_affinity(spec),
        *cluster_ips(spec, stored),
        *external_ips(spec, stored),
        *one_of("spec.type", spec.type, _TYPES),
        *source_ranges(service, old),
        *_load_balancer(spec),
        *_traffic(spec),
    ]


def _topology(annotations: Mapping[str, str]) -> Faults:
    mode, hints = annotations.get(_TOPOLOGY_MODE), annotations.get(_TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    detail = f"must match annotations[{_TOPOLOGY_HINTS}] when both are specified"
    return [invalid(f"metadata.annotations[{_TOPOLOGY_MODE}]", mode, detail)]


def _type(spec: ServiceSpec) -> Faults:
    headless = spec.cluster_ip == "None"
    faults: Faults = []
    if not spec.ports and not headless and spec.type != "ExternalName":
        faults.append(required("spec.ports"))
    if headless and spec.type in ("LoadBalancer", "NodePort"):
        detail = f"may not be set to 'None' for {spec.type} services"
        faults.append(invalid("spec.clusterIPs[0]", "None", detail))
    if spec.type == "ExternalName":
        faults += _external_name(spec)
    return faults


def _external_name(spec: ServiceSpec) -> Faults:
    faults: Faults = []
    if spec.cluster_ip or spec.cluster_ips:
        faults.append(forbidden("spec.clusterIPs", "may not be set for ExternalName services"))
    name = (spec.external_name or "").removesuffix(".")
    if not name:
        faults.append(required("spec.externalName"))
    return faults + (
        invalid_all("spec.externalName", name, names.subdomain_faults(name)) if name else []
    )


def _ports(spec: ServiceSpec) -> Faults:
    service_ports = spec.ports or []
    faults: Faults = []
    taken: dict[str, set[object]] = {"name": set(), "nodePort": set(), "port": set()}
    for index, port in enumerate(service_ports):
        path = f"spec.ports[{index}]"
        faults += _port(port, path, named=len(service_ports) > 1)
        if port.node_port and spec.type == "ClusterIP":
            detail = "may not be used when `type` is 'ClusterIP'"
            faults.append(forbidden(f"{path}.nodePort", detail))
        marks: dict[str, tuple[object, str, object]] = {
            "name": (port.name, f"{path}.name", port.name),
            "nodePort": (
                port.node_port and (port.protocol, port.node_port),
                f"{path}.nodePort",
                port.node_port,
            ),
            "port": (
                (port.protocol, port.port),
                path,
                {"protocol": port.protocol, "port": port.port},
            ),
        }
        for what, (mark, where, shown) in marks.items():
            if mark and mark in taken[what]:
                faults.append(duplicate(where, shown))
            taken[what].add(mark)
    return faults


def port_of(port: ServicePort | EndpointPort, path: str, *, named: bool) -> Faults:
    """Checks name, number and protocol of a port. With `named`, the name is required."""
    faults: Faults = []
    if port.name:
        faults += invalid_all(f"{path}.name", port.name, names.label_faults(port.name))
    elif named:
        faults.append(required(f"{path}.name"))
    faults += port_number(port.port, f"{path}.port")
    return faults + one_of(f"{path}.protocol", port.protocol, PROTOCOLS)


def _port(port: ServicePort, path: str, *, named: bool) -> Faults:
    faults = port_of(port, path, named=named)
    faults += port_or_name(port.target_port or 0, f"{path}.targetPort")
    if port.node_port:
        faults += port_number(port.node_port, f"{path}.nodePort")
    if port.app_protocol:
        complaints = names.qualified_name_faults(port.app_protocol)
        faults += invalid_all(f"{path}.appProtocol", port.app_protocol, complaints)
    return faults


def _affinity(spec: ServiceSpec) -> Faults:
    path, config = "spec.sessionAffinityConfig", spec.session_affinity_config
    faults = one_of("spec.sessionAffinity", spec.session_affinity, _AFFINITIES)
    if spec.session_affinity == "None" and config is not None:
        faults.append(forbidden(path, "must not be set when session affinity is None"))
    if spec.session_affinity == "ClientIP":
        seconds = config.client_ip.timeout_seconds if config and config.client_ip else None
        if seconds is None or not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            detail = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
            faults.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds or 0, detail))
    return faults


def _load_balancer(spec: ServiceSpec) -> Faults:
    wanted = spec.type == "LoadBalancer"
    faults: Faults = []
    if spec.load_balancer_class is not None:
        path, name = "spec.loadBalancerClass", spec.load_balancer_class
        if wanted:
            faults += invalid_all(path, name, names.qualified_name_faults(name))
        else:
            faults.append(forbidden(path, _ONLY_LOAD_BALANCERS))
    allocate = spec.allocate_load_balancer_node_ports
    if allocate is not None and not wanted:
        path = "spec.allocateLoadBalancerNodePorts"
        faults.append(forbidden(path, _ONLY_LOAD_BALANCERS))
    return faults


def _traffic(spec: ServiceSpec) -> Faults:
    faults: Faults = []
    external = spec.external_traffic_policy
    if is_externally_accessible(spec):
        faults += one_of("spec.externalTrafficPolicy", external, _POLICIES)
    elif external:
        detail = "may only be set for externally-accessible services"
        faults.append(invalid("spec.externalTrafficPolicy", external, detail))
    if spec.health_check_node_port:
        faults += _health_check(spec, spec.health_check_node_port)
    if spec.type in ("ClusterIP", "NodePort", "LoadBalancer"):
        faults += one_of("spec.internalTrafficPolicy", spec.internal_traffic_policy, _POLICIES)
    distribution = spec.traffic_distribution
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        faults.append(not_supported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return faults


def _health_check(spec: ServiceSpec, port: int) -> Faults:
    path = "spec.healthCheckNodePort"
    if spec.type == "LoadBalancer" and spec.external_traffic_policy == "Local":
        return port_number(port, path)
    detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    return [invalid(path, port, detail)]
