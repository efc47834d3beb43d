"""Defaults of namespaces and nodes.

Source: pkg/apis/core/v1/defaults.go and pkg/registry/core/namespace/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import Namespace, Node
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults, round_to_milli

_METADATA_NAME = "kubernetes.io/metadata.name"


def namespace(namespace: Namespace) -> Namespace:
    metadata, spec = namespace.metadata, namespace.spec
    if metadata.name and namespace.labels.get(_METADATA_NAME) != metadata.name:
        labels = {**namespace.labels, _METADATA_NAME: metadata.name}
        metadata = metadata.replace(labels=labels)
    finalizers = spec.finalizers or []
    # Upstream adds it to new namespaces only; in one being deleted it may have been removed.
    if "kubernetes" not in finalizers and not namespace.deleting:
        spec = spec.replace(finalizers=[*finalizers, "kubernetes"])
    status = fill_defaults(namespace.status, phase="Active")
    return change_fields(namespace, metadata=metadata, spec=spec, status=status)


def node(node: Node) -> Node:
    status = node.status
    capacity = round_to_milli(status.capacity)
    allocatable = round_to_milli(status.allocatable)
    if allocatable is None and capacity is not None:
        allocatable = capacity
    return change_fields(
        node, status=change_fields(status, capacity=capacity, allocatable=allocatable)
    )
