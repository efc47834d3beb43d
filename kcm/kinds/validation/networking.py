"""Validation of NetworkPolicies, Ingresses and IngressClasses.

Source: pkg/apis/networking/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from kcm.api.core_v1.references import TypedLocalObjectReference
from kcm.api.networking_v1 import (
    HTTPIngressPath,
    Ingress,
    IngressBackend,
    IngressClass,
    IngressClassParametersReference,
    IngressRule,
    IngressServiceBackend,
    IngressSpec,
    IPBlock,
    NetworkPolicy,
    NetworkPolicyPeer,
    NetworkPolicyPort,
    NetworkPolicySpec,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    collect_tentative,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    require_unchanged,
    required,
    too_long,
)
from kcm.kinds.validation import addresses, meta
from kcm.kinds.validation.podspec.handlers import port_number, port_or_name

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_DIRECTIONS = ("Ingress", "Egress")
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_CONTROLLER_LIMIT = 250
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NOT_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_THE_END = ("/..", "/.")
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_HTTP_PATH_RE = re.compile(_HTTP_PATH)
_SCOPES = ("Cluster", "Namespace")
_NOT_AN_ADDRESS = "must be a DNS name, not an IP address"


# --- network policies


def create_policy(policy: NetworkPolicy) -> Faults:
    faults = meta.metadata(policy, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _policy(policy.spec, "spec")


def update_policy(new: NetworkPolicy, old: NetworkPolicy) -> Faults:
    stored = frozenset(_ranges(old.spec))
    return meta.metadata_update(new, old) + _policy(new.spec, "spec", stored)


def _ranges(spec: NetworkPolicySpec) -> Iterable[str]:
    """Yields the ranges of a policy."""
    incoming = [peer for rule in spec.ingress or () for peer in rule.from_ or ()]
    outgoing = [peer for rule in spec.egress or () for peer in rule.to or ()]
    for peer in (*incoming, *outgoing):
        if peer.ip_block is not None:
            yield from (peer.ip_block.cidr or "", *(peer.ip_block.except_ or ()))


def _policy(spec: NetworkPolicySpec, path: str, stored: Collection[str] = ()) -> Faults:
    faults = meta.label_selector(spec.pod_selector, f"{path}.podSelector")
    for index, incoming in enumerate(spec.ingress or ()):
        where = f"{path}.ingress[{index}]"
        faults += _policy_ports(incoming.ports or (), f"{where}.ports")
        faults += _peers(incoming.from_ or (), f"{where}.from", stored)
    for index, outgoing in enumerate(spec.egress or ()):
        where = f"{path}.egress[{index}]"
        faults += _policy_ports(outgoing.ports or (), f"{where}.ports")
        faults += _peers(outgoing.to or (), f"{where}.to", stored)
    types = spec.policy_types or []
    if len(types) > len(_DIRECTIONS):
        detail = "may not specify more than two policyTypes"
        return [*faults, invalid(f"{path}.policyTypes", types, detail)]
    for index, direction in enumerate(types):
        if direction not in _DIRECTIONS:
            faults.append(not_supported(f"{path}.policyTypes[{index}]", direction, _DIRECTIONS))
    return faults


def _policy_ports(ports: Iterable[NetworkPolicyPort], path: str) -> Faults:
    faults: Faults = []
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        if port.protocol is not None and port.protocol not in _PROTOCOLS:
            faults.append(not_supported(f"{where}.protocol", port.protocol, _PROTOCOLS))
        if port.port is not None:
            faults += port_or_name(port.port, f"{where}.port")
        if port.end_port is not None:
            faults += _end_port(port.port, port.end_port, f"{where}.endPort")
    return faults


def _end_port(port: int | str | None, end: int, path: str) -> Faults:
    if port is None:
        return [invalid(path, end, "may not be specified when `port` is not specified")]
    if isinstance(port, str):
        return [invalid(path, end, "may not be specified when `port` is non-numeric")]
    below = [invalid(path, end, "must be greater than or equal to `port`")] if end < port else []
    return below + port_number(end, path)


def _peers(peers: Iterable[NetworkPolicyPeer], path: str, stored: Collection[str]) -> Faults:
    faults: Faults = []
    for index, peer in enumerate(peers):
        where = f"{path}[{index}]"
        if peer.pod_selector is not None:
            faults += meta.label_selector(peer.pod_selector, f"{where}.podSelector")
        if peer.namespace_selector is not None:
            faults += meta.label_selector(peer.namespace_selector, f"{where}.namespaceSelector")
        selects = peer.pod_selector is not None or peer.namespace_selector is not None
        if peer.ip_block is not None:
            faults += _ip_block(peer.ip_block, f"{where}.ipBlock", stored)
            if selects:
                detail = "may not specify both ipBlock and another peer"
                faults.append(forbidden(where, detail))
        elif not selects:
            faults.append(required(where, "must specify a peer"))
    return faults


def _ip_block(block: IPBlock, path: str, stored: Collection[str]) -> Faults:
    """Checks a block. Ranges that the policy has already may be written as formerly allowed."""
    if not block.cidr:
        return [required(f"{path}.cidr")]
    faults = addresses.cidr(block.cidr, f"{path}.cidr", stored)
    whole = addresses.parse_cidr(block.cidr)
    if whole is None:
        return faults
    for index, text in enumerate(block.except_ or ()):
        where, part = f"{path}.except[{index}]", addresses.parse_cidr(text)
        faults += addresses.cidr(text, where, stored)
        if part is not None and not _is_inside(part, whole):
            faults.append(invalid(where, text, "must be a strict subset of `cidr`"))
    return faults


def _is_inside(part: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    same = part.version == whole.version and part.prefixlen > whole.prefixlen
    return same and part.network_address in whole


# --- ingresses


def create_ingress(ingress: Ingress) -> Faults:
    faults = meta.metadata(ingress, namespaced=True, name_rule=names.subdomain_faults)
    faults += _ingress(ingress.spec, "spec")
    given = ingress.annotations.get(_CLASS_ANNOTATION)
    name = ingress.spec.ingress_class_name
    if given is not None and name is not None and given != name:
        detail = "must match `ingressClassName` when both are specified"
        faults.append(invalid(f"annotations.{_CLASS_ANNOTATION}", given, detail))
    return faults


def update_ingress(new: Ingress, old: Ingress) -> Faults:
    faults = _ingress(new.spec, "spec", _OldFaults.of(old.spec))
    return meta.metadata_update(new, old) + faults


def update_ingress_status(new: Ingress, old: Ingress) -> Faults:
    faults = meta.metadata_update(new, old)
    stored = {entry.ip for entry in old.status.load_balancer.ingress or () if entry.ip}
    for index, entry in enumerate(new.status.load_balancer.ingress or ()):
        where = f"status.loadBalancer.ingress[{index}]"
        if entry.ip:
            faults += addresses.address(entry.ip, f"{where}.ip", stored)
        if entry.hostname:
            complaints = names.subdomain_faults(entry.hostname)
            faults += invalid_all(f"{where}.hostname", entry.hostname, complaints)
            if addresses.parse(entry.hostname) is not None:
                faults.append(invalid(f"{where}.hostname", entry.hostname, _NOT_AN_ADDRESS))
    return faults


@dataclass(frozen=True)
class _OldFaults:
    """What is wrong in a stored ingress, from a time when it was allowed, and may stay."""

    secret_names: bool = False
    wildcard_rules: bool = False  # the paths of hosts with a wildcard

    @classmethod
    def of(cls, spec: IngressSpec) -> _OldFaults:
        named = [tls.secret_name for tls in spec.tls or () if tls.secret_name]
        wildcard = [rule for rule in spec.rules or () if rule.host and "*" in rule.host]
        return cls(
            any(names.subdomain_faults(name) for name in named),
            bool(collect_tentative(lambda: (one for rule in wildcard for one in _paths(rule, "")))),
        )


def _paths(rule: IngressRule, path: str) -> Faults:
    if rule.http is None:
        return []
    faults = [] if rule.http.paths else [required(f"{path}.http.paths")]
    for index, http_path in enumerate(rule.http.paths):
        faults += _http_path(http_path, f"{path}.http.paths[{index}]")
    return faults


def _ingress(spec: IngressSpec, path: str, old: _OldFaults = _OldFaults()) -> Faults:
    faults: Faults = []
    if not spec.rules and spec.default_backend is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        faults.append(invalid(path, spec.rules or [], detail))
    if spec.default_backend is not None:
        faults += _backend(spec.default_backend, f"{path}.defaultBackend")
    for index, rule in enumerate(spec.rules or ()):
        where = f"{path}.rules[{index}]"
        if rule.host:
            if addresses.parse(rule.host) is not None:
                faults.append(invalid(f"{where}.host", rule.host, _NOT_AN_ADDRESS))
            faults += _host(rule.host, f"{where}.host")
        if not (old.wildcard_rules and rule.host and "*" in rule.host):
            faults += _paths(rule, where)
    for index, tls in enumerate(spec.tls or ()):
        where = f"{path}.tls[{index}]"
        for at, host in enumerate(tls.hosts or ()):
            faults += _host(host, f"{where}.hosts[{at}]")
        if tls.secret_name and not old.secret_names:
            complaints = names.subdomain_faults(tls.secret_name)
            faults += invalid_all(f"{where}.secretName", tls.secret_name, complaints)
    if spec.ingress_class_name is not None:
        complaints = names.subdomain_faults(spec.ingress_class_name)
        faults += invalid_all(f"{path}.ingressClassName", spec.ingress_class_name, complaints)
    return faults


def _host(host: str, path: str) -> Faults:
    rule = names.wildcard_subdomain_faults if "*" in host else names.subdomain_faults
    return invalid_all(path, host, rule(host))


def _http_path(http_path: HTTPIngressPath, path: str) -> Faults:
    if http_path.path_type is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    text, where = http_path.path or "", f"{path}.path"
    faults: Faults = []
    if http_path.path_type not in _PATH_TYPES:
        faults.append(not_supported(f"{path}.pathType", http_path.path_type, _PATH_TYPES))
    elif http_path.path_type == "ImplementationSpecific":
        if text and not text.startswith("/"):
            faults.append(invalid(where, text, "must be an absolute path"))
    else:
        if not text.startswith("/"):
            faults.append(invalid(where, text, "must be an absolute path"))
        for part in _NOT_IN_PATHS:
            if part in text:
                faults.append(invalid(where, text, f"must not contain '{part}'"))
        for end in _NOT_AT_THE_END:
            if text.endswith(end):
                faults.append(invalid(where, text, f"cannot end with '{end}'"))
    return faults + _backend(http_path.backend, f"{path}.backend")


def _backend(backend: IngressBackend, path: str) -> Faults:
    if backend.resource is not None and backend.service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if backend.resource is not None:
        return _reference(backend.resource, f"{path}.resource")
    if backend.service is not None:
        return _service(backend.service, path)
    return [invalid(path, "", "resource or service backend is required")]


def _service(service: IngressServiceBackend, path: str) -> Faults:
    where, port = f"{path}.service", service.port
    if not service.name:
        faults = [required(f"{where}.name")]
    else:
        complaints = names.label_faults(service.name)
        faults = invalid_all(f"{where}.name", service.name, complaints)
    if port.name and port.number:
        faults.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.name:
        complaints = names.port_name_faults(port.name)
        faults += invalid_all(f"{where}.port.name", port.name, complaints)
    elif port.number:
        faults += port_number(port.number, f"{where}.port.number")
    else:
        faults.append(required(path, "port name or number is required"))
    return faults


def _reference(
    reference: TypedLocalObjectReference | IngressClassParametersReference, path: str
) -> Faults:
    faults: Faults = []
    if reference.api_group is not None:
        complaints = names.subdomain_faults(reference.api_group)
        faults += invalid_all(f"{path}.apiGroup", reference.api_group, complaints)
    for field, value in (("kind", reference.kind), ("name", reference.name)):
        if not value:
            faults.append(required(f"{path}.{field}"))
        else:
            faults += invalid_all(f"{path}.{field}", value, names.path_segment_faults(value))
    return faults


# --- ingress classes


def create_class(ingress_class: IngressClass) -> Faults:
    faults = meta.metadata(ingress_class, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _class(ingress_class)


def update_class(new: IngressClass, old: IngressClass) -> Faults:
    faults = meta.metadata_update(new, old)
    faults += require_unchanged("spec.controller", new.spec.controller, old.spec.controller)
    return faults + _class(new)


def _class(ingress_class: IngressClass) -> Faults:
    controller, path = ingress_class.spec.controller or "", "spec.controller"
    faults: Faults = []
    if not controller:
        faults.append(required(path))
    else:
        if len(controller.encode(errors="replace")) > _CONTROLLER_LIMIT:
            faults.append(too_long(path, _CONTROLLER_LIMIT))
        faults += _domain_and_path(controller, path)
    parameters = ingress_class.spec.parameters
    return faults + ([] if parameters is None else _parameters(parameters, "spec.parameters"))


def _domain_and_path(text: str, path: str) -> Faults:
    """Checks a domain, a slash and a path, such as acme.io/foo.

    Source: IsDomainPrefixedPath in
    staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go.
    """
    host, _, rest = text.partition("/")
    if not host or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    faults = invalid_all(path, host, names.subdomain_faults(host))
    if not _HTTP_PATH_RE.fullmatch(rest):
        detail = f"Invalid path (regex used for validation is '{_HTTP_PATH}')"
        faults.append(invalid(path, rest, detail))
    return faults


def _parameters(parameters: IngressClassParametersReference, path: str) -> Faults:
    faults = _reference(parameters, path)
    where = f"{path}.namespace"
    if parameters.scope is None:
        return [*faults, required(f"{path}.scope")]
    if parameters.scope not in _SCOPES:
        return [*faults, not_supported(f"{path}.scope", parameters.scope, _SCOPES)]
    if parameters.scope == "Cluster":
        condition = "`parameters.scope` is set to 'Cluster'"
        return faults if parameters.namespace is None else [*faults, forbidden(where, condition)]
    if parameters.namespace is None:
        return [*faults, required(where, "`parameters.scope` is set to 'Namespace'")]
    return faults + invalid_all(
        where, parameters.namespace, names.label_faults(parameters.namespace)
    )
