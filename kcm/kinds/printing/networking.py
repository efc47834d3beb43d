"""The columns of the kinds of networking.k8s.io and node.k8s.io.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api.networking_v1 import (
    Ingress,
    IngressClass,
    IPAddress,
    NetworkPolicy,
    ServiceCIDR,
)
from kcm.api.node_v1 import RuntimeClass
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.column import AGE, NAME, NONE, Column, selector

_MOST_HOSTS = 3


def _hosts(ingress: Ingress, _: datetime) -> str:
    rules = ingress.spec.rules or []
    places = [place for place, rule in enumerate(rules, 1) if rule.host][:_MOST_HOSTS]
    if not places:
        return "*"
    shown = ",".join(rules[place - 1].host or "" for place in places)
    # As upstream, rules without a host count, too, behind the last host that is shown.
    full = len(places) == _MOST_HOSTS and places[-1] < len(rules)
    return f"{shown} + {len(rules) - _MOST_HOSTS} more..." if full else shown


def _address(ingress: Ingress, _: datetime) -> str:
    entries = ingress.status.load_balancer.ingress or ()
    return ",".join(sorted({entry.ip or entry.hostname or "" for entry in entries} - {""}))


def _parameters(ingress_class: IngressClass, _: datetime) -> str:
    parameters = ingress_class.spec.parameters
    if parameters is None:
        return NONE
    group = f".{parameters.api_group}" if parameters.api_group is not None else ""
    return f"{parameters.kind}{group}/{parameters.name}"


def _parent(address: IPAddress, _: datetime) -> str:
    parent = address.spec.parent_ref
    if parent is None:
        return NONE
    resource = parent.resource or ""
    if parent.group:
        resource = f"{resource}.{parent.group}"
    return "/".join(part for part in (resource, parent.namespace, parent.name) if part)


COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    NetworkPolicy: (
        NAME,
        Column("Pod-Selector", lambda policy, _: selector(policy.spec.pod_selector)),
        AGE,
    ),
    Ingress: (
        NAME,
        Column("Class", lambda ingress, _: ingress.spec.ingress_class_name or NONE),
        Column("Hosts", _hosts),
        Column("Address", _address),
        Column("Ports", lambda ingress, _: "80, 443" if ingress.spec.tls else "80"),
        AGE,
    ),
    IngressClass: (
        NAME,
        Column("Controller", lambda item, _: item.spec.controller or ""),
        Column("Parameters", _parameters),
        AGE,
    ),
    ServiceCIDR: (
        NAME,
        Column("CIDRs", lambda item, _: ",".join(item.spec.cidrs or ())),
        AGE,
    ),
    IPAddress: (NAME, Column("ParentRef", _parent), AGE),
    RuntimeClass: (NAME, Column("Handler", lambda item, _: item.handler), AGE),
}
