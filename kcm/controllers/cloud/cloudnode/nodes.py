"""Puts what the cloud knows about an instance into its node.

Every function that changes a node returns the same object if there is nothing to change, as a
`Patch` requires.

Source: getNodeModifiersFromCloudProvider, updateNodeAddress and labelReconcileInfo in
staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go, and
staging/src/k8s.io/cloud-provider/node/helpers/address.go, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from kcm import errors
from kcm.api.core_v1 import Node, NodeAddress
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.sdk import InstanceMetadata

UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"
# The deprecated label, and the stable one that gets its value.
INSTANCE_TYPE = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


def is_uninitialized(node: Node) -> bool:
    """Reports whether the node waits for this controller."""
    return any(taint.key == UNINITIALIZED_TAINT for taint in node.spec.taints or ())


def initialize(instance: InstanceMetadata, obj: Node) -> Node:
    """Returns the node with providerID and labels, and without the taint."""
    if not is_uninitialized(obj):
        return obj
    kept = [taint for taint in obj.spec.taints or () if taint.key != UNINITIALIZED_TAINT]
    provider_id = obj.spec.provider_id or instance.provider_id or None
    node = obj.with_spec(obj.spec.replace(taints=kept or None, provider_id=provider_id))
    return node.with_metadata(labels=_labels_from(instance, node))


def _labels_from(instance: InstanceMetadata, node: Node) -> dict[str, str]:
    labels = dict(node.labels)
    for names, value in (
        (INSTANCE_TYPE, instance.instance_type),
        (ZONE, instance.zone),
        (REGION, instance.region),
    ):
        if value:
            labels |= dict.fromkeys(names, value)
    for name, value in instance.additional_labels.items():
        if not _is_kubernetes_label(name):
            labels.setdefault(name, value)
    return labels


def _is_kubernetes_label(name: str) -> bool:
    """Reports whether a label is in Kubernetes' own namespaces, which clouds may not use."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and any(
        domain == own or domain.endswith(f".{own}") for own in ("kubernetes.io", "k8s.io")
    )


def reconcile_labels(obj: KubeObject) -> KubeObject:
    """Returns the node whose stable labels have the values of its deprecated ones."""
    pairs = (INSTANCE_TYPE, ZONE, REGION)
    wanted = {stable: obj.labels[old] for old, stable in pairs if old in obj.labels}
    if all(obj.labels.get(name) == value for name, value in wanted.items()):
        return obj
    return obj.with_metadata(labels={**obj.labels, **wanted})


def with_addresses(instance: InstanceMetadata, obj: Node) -> Node:
    """Returns the node with the addresses of its instance, unless the cloud knows none.

    Raises ApiError if an address that the kubelet was given is not among them.
    """
    if not instance.node_addresses or is_uninitialized(obj):
        return obj
    addresses = wanted_addresses(obj, instance.node_addresses)
    return obj.with_status(obj.status.replace(addresses=addresses)) if _differs(
        obj.status.addresses or (), addresses
    ) else obj  # fmt: skip


def wanted_addresses(node: Node, current: Sequence[NodeAddress]) -> list[NodeAddress]:
    """Returns the addresses for a node's status, those first that its kubelet was given.

    A host name that the cloud does not know is kept. Raises ApiError if the cloud does not know an
    address that the kubelet was given.
    """
    addresses = list(current)
    if all(address.type != "Hostname" for address in addresses):
        addresses += [one for one in node.status.addresses or () if one.type == "Hostname"]
    provided = node.annotations.get(PROVIDED_IP)
    return addresses if provided is None else _prefer(node, provided, addresses)


def _prefer(node: Node, provided: str, addresses: list[NodeAddress]) -> list[NodeAddress]:
    first = [match for ip in provided.split(",") for match in _matching(node, ip, addresses)]
    types = {address.type for address in first}
    return [*first, *(address for address in addresses if address.type not in types)]


def _matching(node: Node, text: str, addresses: list[NodeAddress]) -> list[NodeAddress]:
    try:
        ip = ipaddress.ip_address(text.strip())
    except ValueError:
        raise errors.ApiError(f'failed to parse node IP "{text}" for node "{node.name}"') from None
    matching = [address for address in addresses if _is_ip(address.address, ip)]
    if not matching:
        raise errors.ApiError(
            f'provided node ip for node "{node.name}" is not valid: failed to get node address '
            f"from cloud provider that matches ip: {text.strip()}"
        )
    return matching


def _is_ip(text: str, ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return ipaddress.ip_address(text) == ip
    except ValueError:
        return False


def _differs(old: Sequence[NodeAddress], new: Sequence[NodeAddress]) -> bool:
    """Reports whether the addresses differ by type, as upstream compares them."""
    if len(old) != len(new):
        return True
    by_type = {address.type: address.address for address in old}
    return any(by_type.get(address.type) != address.address for address in new)
