"""Validation of Nodes.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from types import NoneType

from kcm.api.core_v1 import Node, NodeSpec, NodeStatus, Taint
from kcm.api.core_v1.nodes import NodeSystemInfo
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    NOT_NEGATIVE,
    Faults,
    duplicate,
    forbidden,
    invalid,
    one_of,
    required,
)
from kcm.kinds.validation import addresses, meta
from kcm.kinds.validation.podspec.pods import TAINT_EFFECTS

_LONGEST_FEATURE = 253  # characters
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*", re.ASCII)
_FEATURE_FORM = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., "
    "MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def create(node: Node) -> Faults:
    return meta.metadata(node, namespaced=False, name_rule=names.subdomain_faults) + _node(node)


def _node(node: Node) -> Faults:
    return [
        *_avoided_pods(node.annotations),
        *_spec(node.spec),
        *_resources(node.status),
        *_declared_features(node.status.declared_features or []),
        *_swap(node.status.node_info),
    ]


def _swap(info: NodeSystemInfo | None) -> Faults:
    swap = info.swap if info is not None else None
    if swap is None or swap.capacity is None or swap.capacity > 0:
        return []
    path = "metadata.nodeSwapStatus.capacity"  # as in upstream's messages
    return [invalid(path, swap.capacity, "must be greater than zero")]


def _declared_features(features: list[str]) -> Faults:
    faults: Faults = []
    for index, name in enumerate(features):
        path = f"status.declaredFeatures[{index}]"
        if len(name) > _LONGEST_FEATURE:
            detail = f"must be no more than {_LONGEST_FEATURE} characters"
            faults.append(invalid(path, name, f'invalid feature name "{name}": {detail}'))
        elif not _FEATURE.fullmatch(name):
            faults.append(invalid(path, name, f'invalid feature name "{name}": {_FEATURE_FORM}'))
        before = features[index - 1] if index else ""
        if index and name == before:
            faults.append(duplicate(path, name))
        elif name < before:
            faults.append(invalid(path, name, "list must be sorted alphabetically"))
    return faults


def _avoided_pods(annotations: Mapping[str, str]) -> Faults:
    """Checks the annotation that names controllers whose pods a node would rather not have."""
    text = annotations.get(_AVOID_PODS)
    if not text:
        return []
    try:
        entries = json.loads(text).get("preferAvoidPods") or []
        controllers = [(entry.get("podSignature") or {}).get("podController") for entry in entries]
        named = [one.get("controller") if one else None for one in controllers]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return [invalid("metadata.annotations.AvoidPods", _AVOID_PODS, str(error))]
    faults: Faults = []
    for index, (controller, is_controller) in enumerate(zip(controllers, named, strict=True)):
        path = f"metadata.annotations.{_AVOID_PODS}[{index}].PodSignature"
        if not controller:
            faults.append(required(path))
        elif not is_controller:
            where = f"{path}.PodController.Controller"
            faults.append(invalid(where, False, "must point to a controller"))
    return faults


def _spec(spec: NodeSpec) -> Faults:
    faults = taints(spec.taints or (), "metadata.taints")  # as in upstream's messages
    ranges = spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else [])
    for index, text in enumerate(ranges):
        faults += addresses.cidr(text, f"spec.podCIDRs[{index}]")
    families = [type(addresses.parse_cidr(text)) for text in ranges]
    if NoneType not in families and len(set(families)) < len(families):
        detail = "may specify no more than one CIDR for each IP family"
        faults.append(invalid("spec.podCIDRs", ranges, detail))
    return faults


def taints(node_taints: Iterable[Taint], path: str) -> Faults:
    """Checks taints: keys and values as those of labels, and one taint for each key and effect."""
    faults: Faults = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node_taints):
        where = f"{path}[{index}]"
        faults += metadata_checks.label_key(taint.key, f"{where}.key")
        complaints = ";".join(metadata_checks.label_value_faults(taint.value or ""))
        if complaints:
            faults.append(invalid(f"{where}.value", taint.value, complaints))
        faults += one_of(f"{where}.effect", taint.effect, TAINT_EFFECTS)
        if (taint.key, taint.effect) in seen:
            detail = "taints must be unique by key and effect pair"
            faults.append(duplicate(where, taint, detail))
        seen.add((taint.key, taint.effect))
    return faults


def _resources(status: NodeStatus) -> Faults:
    amounts = {"capacity": status.capacity or {}, "allocatable": status.allocatable or {}}
    return [
        invalid(f"status.{field}[{name}]", str(amount), NOT_NEGATIVE)
        for field, resource_list in amounts.items()
        for name, amount in resource_list.items()
        if amount.sign() < 0
    ]


def update(new: Node, old: Node) -> Faults:
    faults = meta.metadata_update(new, old) + _node(new)
    faults += _set_once(new.spec, old.spec)
    # Fields that may change are masked; any other difference is rejected.
    masked = new.spec.replace(
        pod_cidr=old.spec.pod_cidr,
        pod_cidrs=old.spec.pod_cidrs,
        provider_id=old.spec.provider_id,
        taints=old.spec.taints,
        unschedulable=old.spec.unschedulable,
        config_source=old.spec.config_source,
    )
    if masked != old.spec:
        detail = "node updates may only change labels, taints, or capacity"
        faults.append(forbidden("spec", detail))
    return faults


def _set_once(new: NodeSpec, old: NodeSpec) -> Faults:
    """Checks that podCIDRs and providerID do not change once they are set."""
    faults: Faults = []
    if old.pod_cidrs and new.pod_cidrs != old.pod_cidrs:
        detail = 'node updates may not change podCIDR except from "" to valid'
        faults.append(forbidden("spec.podCIDRs", detail))
    if old.provider_id and new.provider_id != old.provider_id:
        detail = 'node updates may not change providerID except from "" to valid'
        faults.append(forbidden("spec.providerID", detail))
    return faults


def status_update(new: Node, old: Node) -> Faults:
    faults = meta.metadata_update(new, old) + _resources(new.status)
    faults += _declared_features(new.status.declared_features or [])
    faults += _swap(new.status.node_info)
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(new.status.addresses or ()):
        if (address.type, address.address) in seen:
            faults.append(duplicate(f"status.addresses[{index}]", address))
        seen.add((address.type, address.address))
    return faults
