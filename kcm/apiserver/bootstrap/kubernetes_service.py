"""The Service `kubernetes` in the namespace default, by which programs in pods find this server.

If it is deleted, it is created again. Its endpoints are the addresses of the API servers. A server
that listens on the loopback only has no endpoint, since pods cannot reach it.

Source: pkg/controlplane/controller/kubernetesservice/controller.go and
pkg/controlplane/reconcilers/instancecount.go, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
import socket

import structlog

from kcm import errors
from kcm.api.core_v1 import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)
from kcm.api.discovery_v1 import Endpoint, EndpointConditions, EndpointSlice
from kcm.api.discovery_v1 import EndpointPort as SlicePort
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.http.listening import LOOPBACK_OF_ALL
from kcm.loops import Loop, Turn
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

NAME, NAMESPACE, KEY = "kubernetes", "default", "default/kubernetes"
# This module writes the EndpointSlice of these endpoints, too.
_UNMIRRORED = {"endpointslice.kubernetes.io/skip-mirror": "true"}
_CLUSTER_DOMAIN = "cluster.local"
INTERVAL = 10.0  # seconds, as upstream's EndpointInterval
PORT = 443
_NOWHERE_NEAR = ("192.0.2.1", 9)  # no packet is sent: the system only chooses a local address


def list_names(service_ranges: str) -> tuple[str, ...]:
    """Returns the names and addresses by which pods reach this server through the Service.

    `service_ranges` are the address ranges of Services, separated by commas; the Service has the
    first address of each.
    """
    ranges = [ipaddress.ip_network(text.strip()) for text in service_ranges.split(",")]
    name = f"{NAME}.{NAMESPACE}"
    return (
        NAME, name, f"{name}.svc", f"{name}.svc.{_CLUSTER_DOMAIN}",
        *(str(addresses[1]) for addresses in ranges),
    )  # fmt: skip


def find_advertised_address(host: str) -> str:
    """Returns the address at which others reach a server that is bound to `host`.

    Returns "" if they cannot reach it.
    """
    try:
        if host in LOOPBACK_OF_ALL:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect(_NOWHERE_NEAR)
                host = str(probe.getsockname()[0])
        address = ipaddress.ip_address(host)
    except (OSError, ValueError):
        return ""
    return "" if address.is_loopback or address.is_unspecified else str(address)


class KubernetesService(Loop):
    """Creates the Service and its endpoints, and corrects them."""

    def __init__(self, store: Store, host: str, port: int) -> None:
        super().__init__("kcm-kubernetes-service")
        self._store = store
        self._ip = find_advertised_address(host)
        self._port = port

    def end(self) -> None:
        """Removes this server's address from the endpoints."""
        self._keep_endpoints(here=False)

    def turn(self, patience: float) -> Turn:
        """Creates or corrects the Service and its endpoints. Raises what the store raises."""
        self._ensure(self._service())
        if self._ip:
            self._ensure(Endpoints(metadata=_metadata(**_UNMIRRORED)))
            self._ensure(self._slice([]))
            self._keep_endpoints(here=True)
        return Turn(upkeep_in=INTERVAL)

    def _ensure(self, obj: KubeObject) -> None:
        if self._store.get_all([(obj.resource, KEY)]) == [None]:
            try:
                self._store.create(obj)
            except errors.AlreadyExists:
                return

    def _service(self) -> Service:
        port = ServicePort(name="https", protocol="TCP", port=PORT, target_port=self._port)
        ip = self._store.service_ranges.first_ip
        return Service(
            metadata=_metadata(component="apiserver", provider=NAME),
            spec=ServiceSpec(type="ClusterIP", cluster_ip=ip, cluster_ips=[ip], ports=[port]),
        )

    def _slice(self, ips: list[str]) -> EndpointSlice:
        family = "IPv6" if ":" in self._ip else "IPv4"
        ready = EndpointConditions(ready=True)
        return EndpointSlice(
            metadata=_metadata(**{"kubernetes.io/service-name": NAME}),
            address_type=family,
            endpoints=[Endpoint(addresses=[ip], conditions=ready) for ip in ips],
            ports=[SlicePort(name="https", protocol="TCP", port=self._port)],
        )

    def _keep_endpoints(self, *, here: bool) -> None:
        """Adds this server's address to the endpoints if `here`, and removes it otherwise.

        Other servers' addresses stay.
        """
        if not self._ip:
            return
        endpoints = self._store.modify(
            Endpoints.resource, KEY, lambda old: self._with_address(old, here)
        )
        ips = _ips(endpoints)
        self._store.modify(EndpointSlice.resource, KEY, lambda old: _like(old, self._slice(ips)))

    def _with_address(self, old: Endpoints, here: bool) -> Endpoints:
        others = [ip for ip in _ips(old) if ip != self._ip]
        ips = sorted([*others, self._ip] if here else others)
        ports = [EndpointPort(name="https", port=self._port, protocol="TCP")]
        subset = EndpointSubset(addresses=[EndpointAddress(ip=ip) for ip in ips], ports=ports)
        endpoints = old.replace(subsets=[subset] if ips else None)
        return endpoints.with_metadata(labels={**old.labels, **_UNMIRRORED})


def _metadata(**labels: str) -> ObjectMeta:
    return ObjectMeta(name=NAME, namespace=NAMESPACE, labels=labels or None)


def _ips(endpoints: Endpoints) -> list[str]:
    return [address.ip for subset in endpoints.subsets or () for address in subset.addresses or ()]


def _like(old: EndpointSlice, new: EndpointSlice) -> EndpointSlice:
    return old.replace(endpoints=new.endpoints, ports=new.ports)
