"""Builds the Node object of this kubelet: pure functions.

Source: pkg/kubelet/kubelet_node_status.go and pkg/kubelet/nodestatus/setters.go, Kubernetes 1.33.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from kcm.api.core_v1 import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeStatus,
    Taint,
)
from kcm.api.core_v1.nodes import ContainerImage
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.node_reports import resources_of
from kcm.helpers.node_token import PROOF_ANNOTATION, TLS_ANNOTATION
from kcm.kubelet.images.store import Image
from kcm.kubelet.node.machine import MachineInfo, go_architecture

_REACH_ANNOTATIONS = frozenset({TLS_ANNOTATION, PROOF_ANNOTATION})
_MOST_IMAGES, _MOST_NAMES_OF_IMAGE = 50, 5
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
    name: str,
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    reach: Mapping[str, str] = MappingProxyType({}),
) -> Node:
    """Returns the node to register, without a status.

    `reach` are the annotations that say how the node's HTTP API is reached.
    """
    annotations = {_ATTACH_ANNOTATION: "true", **reach}
    metadata = ObjectMeta(name=name, labels=build_labels(name, labels), annotations=annotations)
    node = Node(metadata=metadata)
    return node.with_spec(node.spec.replace(taints=list(taints) or None))


def update_labels(node: Node, labels: Mapping[str, str]) -> Node:
    """Returns a registered node with the labels of `build_labels`; `node` itself if it has them."""
    wanted = {**node.labels, **build_labels(node.name or "", labels)}
    return node if node.labels == wanted else node.with_metadata(labels=wanted)


def update_reach(node: Node, reach: Mapping[str, str]) -> Node:
    """Returns a node with the annotations of `build_node`; `node` itself if it has them."""
    others = {k: v for k, v in node.annotations.items() if k not in _REACH_ANNOTATIONS}
    annotations = {**others, **reach}
    return node if node.annotations == annotations else node.with_metadata(annotations=annotations)


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


def build_images(images: Iterable[Image]) -> list[ContainerImage] | None:
    """Returns the largest images of a node, with some of their names; None if there are none."""
    largest = sorted(images, key=lambda image: (-image.size, image.id))[:_MOST_IMAGES]
    return [
        ContainerImage(
            names=[*image.digests, *image.tags][:_MOST_NAMES_OF_IMAGE], size_bytes=image.size
        )
        for image in largest
    ] or None
