"""Builds the Node object of this kubelet: pure functions.

Source: pkg/kubelet/kubelet_node_status.go and pkg/kubelet/nodestatus/setters.go, Kubernetes 1.33.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from kcm.api.core_v1 import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeStatus,
    Taint,
)
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.node_reports import resources_of
from kcm.kubelet.node.machine import MachineInfo, go_architecture
from kcm.store.node_token import TLS_ANNOTATION

_ATTACH_ANNOTATION = "volumes.kubernetes.io/controller-managed-attach-detach"


def build_labels(name: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Returns the labels of the node: those that upstream sets, and those of --node-labels."""
    system, architecture = platform.system().lower(), go_architecture()
    return {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": system,
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system,
        **labels,
    }


def build_node(
    name: str, labels: Mapping[str, str], taints: Sequence[Taint], *, tls: bool = False
) -> Node:
    """Returns the node to register, without a status. `tls`: its HTTP API is served over TLS."""
    annotations = {_ATTACH_ANNOTATION: "true", **({TLS_ANNOTATION: "true"} if tls else {})}
    metadata = ObjectMeta(name=name, labels=build_labels(name, labels), annotations=annotations)
    node = Node(metadata=metadata)
    return node.with_spec(node.spec.replace(taints=list(taints) or None))


def update_labels(node: Node, labels: Mapping[str, str], *, tls: bool = False) -> Node:
    """Returns a registered node with the labels of `build_labels`; `node` itself if it has them.

    `tls` is as in `build_node`.
    """
    wanted = build_labels(node.name or "", labels)
    known_tls = node.annotations.get(TLS_ANNOTATION) == "true"
    if known_tls is tls and all(node.labels.get(name) == value for name, value in wanted.items()):
        return node
    annotations = {k: v for k, v in node.annotations.items() if k != TLS_ANNOTATION}
    if tls:
        annotations[TLS_ANNOTATION] = "true"
    return node.with_metadata(labels={**node.labels, **wanted}, annotations=annotations)


def build_status(
    node: Node,
    machine: MachineInfo,
    *,
    capacity: Mapping[str, Quantity],
    reserved: Mapping[str, Quantity],
    addresses: Sequence[NodeAddress],
    conditions: Sequence[NodeCondition],
    port: int,
) -> NodeStatus:
    """Returns the node status to report. Other resources and conditions of the node are kept."""
    types = {condition.type for condition in conditions}
    others = [c for c in node.status.conditions or () if c.type not in types]
    whole, allocatable = resources_of(node.status, capacity, reserved)
    return node.status.replace(
        capacity=whole,
        allocatable=allocatable,
        conditions=[*others, *conditions],
        addresses=list(addresses),
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port)),
        node_info=machine.system,
    )
