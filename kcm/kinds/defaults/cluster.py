"""Defaults of namespaces, nodes, ResourceQuotas and LimitRanges.

Source: pkg/apis/core/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import LimitRange, LimitRangeItem, Namespace, Node, ResourceQuota
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults, fill_each, round_to_milli

_METADATA_NAME = "kubernetes.io/metadata.name"


def namespace(namespace: Namespace) -> Namespace:
    metadata = namespace.metadata
    if metadata.name and namespace.labels.get(_METADATA_NAME) != metadata.name:
        labels = {**namespace.labels, _METADATA_NAME: metadata.name}
        metadata = metadata.replace(labels=labels)
    status = fill_defaults(namespace.status, phase="Active")
    return change_fields(namespace, metadata=metadata, status=status)


def node(node: Node) -> Node:
    status = node.status
    capacity = round_to_milli(status.capacity)
    allocatable = round_to_milli(status.allocatable)
    if allocatable is None and capacity is not None:
        allocatable = capacity
    return change_fields(
        node, status=change_fields(status, capacity=capacity, allocatable=allocatable)
    )


# --- Defaults of ResourceQuotas and LimitRanges.
#
# Source: pkg/apis/core/v1/defaults.go (SetDefaults_ResourceList, SetDefaults_LimitRangeItem),
# Kubernetes 1.33.


def resource_quota(quota: ResourceQuota) -> ResourceQuota:
    spec = change_fields(quota.spec, hard=round_to_milli(quota.spec.hard))
    status = quota.status
    status = change_fields(
        status, hard=round_to_milli(status.hard), used=round_to_milli(status.used)
    )
    return change_fields(quota, spec=spec, status=status)


def limit_range(obj: LimitRange) -> LimitRange:
    limits = fill_each(obj.spec.limits, _item)
    return change_fields(obj, spec=change_fields(obj.spec, limits=limits))


def _item(item: LimitRangeItem) -> LimitRangeItem:
    """Fills in `default` and `defaultRequest` of an item for containers.

    The default of `default` is `max`. That of `defaultRequest` is `default`, otherwise `min`.
    """
    amounts = ("max", "min", "default", "default_request", "max_limit_request_ratio")
    item = change_fields(item, **{name: round_to_milli(getattr(item, name)) for name in amounts})
    if item.type != "Container":
        return item
    default = {**(item.max or {}), **(item.default or {})}
    request = {**(item.min or {}), **default, **(item.default_request or {})}
    return change_fields(item, default=default or item.default, default_request=request or None)
