"""Builds Node objects and statuses as a simulated kubelet registers and reports them.

Source: pkg/kubelet/kubelet_node_status.go and pkg/kubelet/nodestatus/setters.go, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from kcm import __version__
from kcm.api.core_v1 import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.helpers.node_reports import condition, pressure_conditions, resources_of
from kcm.kubelet.node.machine import KUBELET_VERSION
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.runtime.containers import NAME
from kcm.simulation.scripting.scripts import NodeScript

_ATTACH = "volumes.kubernetes.io/controller-managed-attach-detach"
# As pkg/kubelet/kubelet_node_status.go registers with an external cloud provider.
UNINITIALIZED = Taint(
    key="node.cloudprovider.kubernetes.io/uninitialized", value="true", effect="NoSchedule"
)

_PRESSURES = {  # the condition of each state of a script
    "memory-pressure": "MemoryPressure",
    "disk-pressure": "DiskPressure",
    "pid-pressure": "PIDPressure",
}
_READY = ("KubeletReady", "kubelet is posting ready status")
_NOT_READY = ("KubeletNotReady", "container runtime is down")


def labels_of(options: SimulatorOptions, index: int, name: str) -> dict[str, str]:
    """Returns the labels that a node registers with. `index` is the node's number, from 0."""
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": options.region,
        "topology.kubernetes.io/zone": options.zone_of(index),
        SIMULATOR_LABEL: options.name_prefix.rstrip("-") or "nodes",
    }


def new_node(options: SimulatorOptions, index: int, name: str) -> Node:
    """Returns the node to register, without a status."""
    meta = ObjectMeta(
        name=name, labels=labels_of(options, index, name), annotations={_ATTACH: "true"}
    )
    taints = [UNINITIALIZED] if options.external_cloud else None
    return Node(metadata=meta, spec=NodeSpec(taints=taints))


def update_labels(node: Node, options: SimulatorOptions, index: int) -> Node:
    """Returns a registered node with the labels of `labels_of`, or `node` itself if it has them."""
    missing = {
        label: value
        for label, value in labels_of(options, index, node.name).items()
        if node.labels.get(label) != value
    }
    if not missing:
        return node
    return node.with_metadata(labels={**node.labels, **missing})


def status_of(
    node: Node, options: SimulatorOptions, index: int, script: NodeScript, now: datetime
) -> NodeStatus:
    """Returns the node status to report at `now`, which is by the node's own clock."""
    before = node.status
    pressures = {kind for state, kind in _PRESSURES.items() if state in script.states}
    own = pressure_conditions(pressures, before, now)
    own.append(_ready("not-ready" not in script.states, before, now))
    types = {c.type for c in own}
    others = [c for c in node.status.conditions or () if c.type not in types]
    capacity, allocatable = resources_of(before, options.capacity, {})
    return node.status.replace(
        capacity=capacity,
        allocatable=allocatable,
        conditions=[*others, *own],
        addresses=[
            NodeAddress(type="InternalIP", address=options.address_of(index)),
            NodeAddress(type="Hostname", address=node.name),
        ],
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=10250)),
        node_info=node.status.node_info or _info(node.name),
    )


def _ready(ready: bool, before: NodeStatus, now: datetime) -> NodeCondition:
    return condition("Ready", ready, _READY if ready else _NOT_READY, before, now)


def _info(name: str) -> NodeSystemInfo:
    digits = hashlib.sha256(name.encode()).hexdigest()
    machine = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"
    return NodeSystemInfo(
        machine_id=digits[:32],
        system_uuid=machine,
        boot_id=machine,
        kernel_version="6.1.0-simulated",
        os_image="Simulated Linux",
        container_runtime_version=f"{NAME}://{__version__}",
        kubelet_version=KUBELET_VERSION,
        kube_proxy_version="",
        operating_system="linux",
        architecture="amd64",
    )
