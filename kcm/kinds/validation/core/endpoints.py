"""Validation of Endpoints and EndpointSlices.

Source: pkg/apis/core/validation/validation.go and pkg/apis/discovery/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import EndpointAddress, EndpointPort, Endpoints
from kcm.api.discovery_v1 import Endpoint, EndpointHints, EndpointSlice
from kcm.api.discovery_v1 import EndpointPort as SlicePort
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_all,
    one_of,
    require_unchanged,
    required,
    too_many,
)
from kcm.kinds.validation import addresses, meta
from kcm.kinds.validation.core.services import port_of
from kcm.kinds.validation.podspec.containers import PROTOCOLS
from kcm.kinds.validation.podspec.handlers import port_number

_TYPES = ("FQDN", "IPv4", "IPv6")
_MAX_ENDPOINTS = 1000
_MAX_ADDRESSES = 100
_MAX_PORTS = 20_000
_MAX_TOPOLOGY = 16
_MAX_HINTS = 8


def create_endpoints(endpoints: Endpoints) -> Faults:
    faults = meta.metadata(endpoints, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _subsets(endpoints)


def update_endpoints(new: Endpoints, old: Endpoints) -> Faults:
    return meta.metadata_update(new, old) + _subsets(new)


def _subsets(endpoints: Endpoints) -> Faults:
    faults: Faults = []
    for index, subset in enumerate(endpoints.subsets or ()):
        path = f"subsets[{index}]"
        ready, waiting = subset.addresses or [], subset.not_ready_addresses or []
        if not ready and not waiting:
            faults.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field, endpoint_addresses in (("addresses", ready), ("notReadyAddresses", waiting)):
            for number, address in enumerate(endpoint_addresses):
                faults += _address(address, f"{path}.{field}[{number}]")
        ports = subset.ports or []
        for number, port in enumerate(ports):
            faults += _port(port, f"{path}.ports[{number}]", named=len(ports) > 1)
    return faults


def _address(address: EndpointAddress, path: str) -> Faults:
    faults = _ip(address.ip, f"{path}.ip")
    if address.hostname:
        complaints = names.label_faults(address.hostname)
        faults += invalid_all(f"{path}.hostname", address.hostname, complaints)
    if address.node_name is not None:
        faults += _node_name(address.node_name, f"{path}.nodeName")
    return faults


def _ip(text: str, path: str) -> Faults:
    return addresses.address(text, path) or addresses.of_endpoint(text, path)


def _node_name(name: str, path: str) -> Faults:
    return invalid_all(path, name, names.subdomain_faults(name))


def _port(port: EndpointPort, path: str, *, named: bool) -> Faults:
    return port_of(port, path, named=named) + _app_protocol(port.app_protocol, path)


def _app_protocol(name: str | None, path: str) -> Faults:
    if name is None:
        return []
    return invalid_all(f"{path}.appProtocol", name, names.qualified_name_faults(name))


def create_slice(endpoint_slice: EndpointSlice) -> Faults:
    faults = meta.metadata(endpoint_slice, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _slice(endpoint_slice)


def update_slice(new: EndpointSlice, old: EndpointSlice) -> Faults:
    unchanged = new.endpoints == old.endpoints  # what older versions accepted may stay
    return [
        *meta.metadata_update(new, old),
        *(
            fault
            for fault in _slice(new)
            if not (unchanged and fault.field.startswith("endpoints"))
        ),
        *require_unchanged("addressType", new.address_type, old.address_type),
    ]


def _slice(endpoint_slice: EndpointSlice) -> Faults:
    return [
        *one_of("addressType", endpoint_slice.address_type, _TYPES),
        *_endpoints(endpoint_slice.endpoints, endpoint_slice.address_type),
        *_slice_ports(endpoint_slice.ports or []),
    ]


def _endpoints(endpoints: Sequence[Endpoint], kind: str) -> Faults:
    if len(endpoints) > _MAX_ENDPOINTS:
        return [too_many("endpoints", len(endpoints), _MAX_ENDPOINTS)]
    return [
        fault
        for index, endpoint in enumerate(endpoints)
        for fault in _endpoint(endpoint, kind, f"endpoints[{index}]")
    ]


def _endpoint(endpoint: Endpoint, kind: str, path: str) -> Faults:
    where, endpoint_addresses = f"{path}.addresses", endpoint.addresses
    faults: Faults = []
    if not endpoint_addresses:
        faults.append(required(where, "must contain at least 1 address"))
    elif len(endpoint_addresses) > _MAX_ADDRESSES:
        faults.append(too_many(where, len(endpoint_addresses), _MAX_ADDRESSES))
    for index, address in enumerate(endpoint_addresses):
        faults += _slice_address(address, kind, where, index)
    if endpoint.node_name is not None:
        faults += _node_name(endpoint.node_name, f"{path}.nodeName")
    topology = endpoint.deprecated_topology or {}
    if len(topology) > _MAX_TOPOLOGY:
        faults.append(too_many(f"{path}.deprecatedTopology", len(topology), _MAX_TOPOLOGY))
    faults += metadata_checks.labels(topology, f"{path}.deprecatedTopology")
    if endpoint.hostname is not None:
        complaints = names.label_faults(endpoint.hostname)
        faults += invalid_all(f"{path}.hostname", endpoint.hostname, complaints)
    return faults + (_hints(endpoint.hints, f"{path}.hints") if endpoint.hints else [])


def _slice_address(address: str, kind: str, addresses_path: str, index: int) -> Faults:
    path = f"{addresses_path}[{index}]"
    if kind in ("IPv4", "IPv6"):
        if faults := addresses.address(address, path):
            return faults
        return [
            *addresses.of_family(address, kind, addresses_path),
            *addresses.of_endpoint(address, path),
        ]
    if kind != "FQDN":
        return []
    if "." not in address.removesuffix("."):
        detail = "should be a domain with at least two segments separated by dots"
        return [invalid(path, address, detail)]
    return invalid_all(path, address, names.subdomain_faults(address.removesuffix(".")))


def _hints(hints: EndpointHints, path: str) -> Faults:
    faults: Faults = []
    for field, hinted in (
        ("forZones", [hint.name for hint in hints.for_zones or ()]),
        ("forNodes", [hint.name for hint in hints.for_nodes or ()]),
    ):
        where = f"{path}.{field}"
        if len(hinted) > _MAX_HINTS:
            return [*faults, too_many(where, len(hinted), _MAX_HINTS)]
        for index, name in enumerate(hinted):
            if name in hinted[:index]:
                faults.append(duplicate(f"{where}[{index}].name", name))
            rule = (
                metadata_checks.label_value_faults
                if field == "forZones"
                else names.subdomain_faults
            )
            faults += invalid_all(f"{where}[{index}].name", name, rule(name))
    return faults


def _slice_ports(ports: Sequence[SlicePort]) -> Faults:
    if len(ports) > _MAX_PORTS:
        return [too_many("ports", len(ports), _MAX_PORTS)]
    faults: Faults = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.name or ""
        if name:
            faults += invalid_all(f"{path}.name", name, names.label_faults(name))
        if name in seen:
            faults.append(duplicate(f"{path}.name", name))
        seen.add(name)
        if port.port is not None:
            faults += port_number(port.port, f"{path}.port")
        faults += one_of(f"{path}.protocol", port.protocol, PROTOCOLS)
        faults += _app_protocol(port.app_protocol, path)
    return faults
