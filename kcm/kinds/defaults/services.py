"""Defaults of Services, Endpoints and EndpointSlices.

Source: pkg/apis/core/v1/defaults.go and pkg/apis/discovery/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api import core_v1, discovery_v1
from kcm.api.core_v1 import ClientIPConfig, Service, ServicePort, ServiceSpec, SessionAffinityConfig
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults, fill_each

_AFFINITY_SECONDS = 10800
_WITH_ADDRESS = ("ClusterIP", "NodePort", "LoadBalancer")


def service(service: Service) -> Service:
    spec = fill_defaults(service.spec, session_affinity="None", type="ClusterIP")
    spec = _affinity(change_fields(spec, ports=fill_each(spec.ports, _port)))
    if is_externally_accessible(spec):
        spec = fill_defaults(spec, external_traffic_policy="Cluster")
    if spec.type in _WITH_ADDRESS:
        spec = fill_defaults(spec, internal_traffic_policy="Cluster")
    if spec.type == "LoadBalancer":
        spec = fill_defaults(spec, allocate_load_balancer_node_ports=True)
    return change_fields(service, spec=spec, status=_status(service))


def is_externally_accessible(spec: ServiceSpec) -> bool:
    """Reports whether the Service accepts traffic from outside the cluster."""
    if spec.type in ("LoadBalancer", "NodePort"):
        return True
    return spec.type == "ClusterIP" and bool(spec.external_ips)


def _affinity(spec: ServiceSpec) -> ServiceSpec:
    if spec.session_affinity == "None":
        return change_fields(spec, session_affinity_config=None)
    if spec.session_affinity != "ClientIP":
        return spec
    config = spec.session_affinity_config or SessionAffinityConfig()
    client = fill_defaults(config.client_ip or ClientIPConfig(), timeout_seconds=_AFFINITY_SECONDS)
    return change_fields(spec, session_affinity_config=change_fields(config, client_ip=client))


def _port(port: ServicePort) -> ServicePort:
    target = port.port if port.target_port in (None, 0, "") else port.target_port
    return change_fields(fill_defaults(port, protocol="TCP"), target_port=target)


def _status(service: Service) -> core_v1.ServiceStatus:
    status, balancer = service.status, service.status.load_balancer
    ingress = fill_each(
        balancer.ingress, lambda item: fill_defaults(item, ip_mode="VIP") if item.ip else item
    )
    return change_fields(status, load_balancer=change_fields(balancer, ingress=ingress))


def endpoints(endpoints: core_v1.Endpoints) -> core_v1.Endpoints:
    def subset(given: core_v1.EndpointSubset) -> core_v1.EndpointSubset:
        ports = fill_each(given.ports, lambda port: fill_defaults(port, protocol="TCP"))
        return change_fields(given, ports=ports)

    return change_fields(endpoints, subsets=fill_each(endpoints.subsets, subset))


def endpoint_slice(obj: discovery_v1.EndpointSlice) -> discovery_v1.EndpointSlice:
    return change_fields(
        obj, ports=fill_each(obj.ports, lambda port: fill_defaults(port, name="", protocol="TCP"))
    )
