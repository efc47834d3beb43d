"""The node as this kubelet writes it: pure but for `machine`.

Source: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus/setters.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
import platform
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kcm import __version__
from kcm.api.core_v1 import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.node_reports import resources_of

KUBELET_VERSION = f"v1.33.0-kcm.{__version__}"
_ATTACH = "volumes.kubernetes.io/controller-managed-attach-detach"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


@dataclass(frozen=True)
class Machine:
    """What the machine is and has; memory and disk in bytes."""

    cpus: int
    memory: int
    disk: int
    info: NodeSystemInfo


def machine(root: Path, runtime: str) -> Machine:
    """This machine; `root` is where pods' files are, `runtime` its name and version."""
    kernel = platform.uname()
    return Machine(
        cpus=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        disk=shutil.disk_usage(root).total,
        info=NodeSystemInfo(
            machine_id=_read("/etc/machine-id") or f"{uuid.getnode():032x}",
            system_uuid=_read("/sys/class/dmi/id/product_uuid")
            or str(uuid.UUID(int=uuid.getnode())),
            boot_id=_read("/proc/sys/kernel/random/boot_id"),
            kernel_version=kernel.release,
            os_image=_os_image(),
            container_runtime_version=runtime,
            kubelet_version=KUBELET_VERSION,
            kube_proxy_version="",
            operating_system=kernel.system.lower(),
            architecture=architecture(),
        ),
    )


def architecture() -> str:
    """As Go names it."""
    found = platform.machine()
    return _ARCHITECTURES.get(found, found)


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return ""


def _os_image() -> str:
    for line in _read("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"')
    return platform.system()


def labels_of(name: str, own: Mapping[str, str]) -> dict[str, str]:
    """The labels that a node has; `own` are those of the flag."""
    system, arch = platform.system().lower(), architecture()
    return {
        "beta.kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": system,
        "kubernetes.io/arch": arch,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system,
        **own,
    }


def new_node(
    name: str, labels: Mapping[str, str], taints: Sequence[Taint], *, schedulable: bool = True
) -> Node:
    """A node to register, not looked at yet."""
    meta = ObjectMeta(name=name, labels=labels_of(name, labels), annotations={_ATTACH: "true"})
    node = Node(metadata=meta)
    spec = node.spec.replace(taints=list(taints) or None, unschedulable=not schedulable or None)
    return node.with_spec(spec)


def adopted(node: Node, labels: Mapping[str, str]) -> Node:
    """A node that was registered before, with the labels that it is to have."""
    wanted = labels_of(node.name or "", labels)
    if all(node.labels.get(label) == value for label, value in wanted.items()):
        return node
    return node.with_metadata(labels={**node.labels, **wanted})


def capacity_of(found: Machine, max_pods: int) -> dict[str, Quantity]:
    return {
        "cpu": Quantity(found.cpus),
        "memory": Quantity(f"{found.memory // 1024}Ki"),
        "ephemeral-storage": Quantity(f"{found.disk // 1024}Ki"),
        "pods": Quantity(max_pods),
    }


def status_of(
    node: Node,
    found: Machine,
    *,
    capacity: Mapping[str, Quantity],
    reserved: Mapping[str, Quantity],
    addresses: Sequence[NodeAddress],
    conditions: Sequence[NodeCondition],
    port: int,
) -> NodeStatus:
    """The status to report; resources and conditions that others own stay."""
    types = {condition.type for condition in conditions}
    others = [c for c in node.status.conditions or () if c.type not in types]
    whole, allocatable = resources_of(node.status, capacity, reserved)
    return node.status.replace(
        capacity=whole,
        allocatable=allocatable,
        conditions=[*others, *conditions],
        addresses=list(addresses),
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port)),
        node_info=found.info,
    )
