"""Builds the runtime's configurations of sandboxes and containers from pods: pure functions.

Source: pkg/kubelet/kuberuntime/kuberuntime_{sandbox,container,container_linux}.go, and shares and
quota in pkg/kubelet/cm/helpers_linux.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kcm.api.core_v1 import Container, EphemeralContainer, Pod, PodSpec
from kcm.api.core_v1.security import Capabilities
from kcm.api.pods import resources as pod_resources
from kcm.api.pods.qos import BEST_EFFORT, GUARANTEED, qos_class
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.cri import (
    ContainerConfig,
    Mount,
    PortMapping,
    Resources,
    SandboxConfig,
)
from kcm.kubelet.environment.expansion import expand_all
from kcm.kubelet.images.store import ImageUser
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.kuberuntime.isolation import build_container_isolation, build_sandbox_isolation
from kcm.kubelet.kuberuntime.security_context import (
    determine_effective_security_context,
    verify_run_as_non_root,
)
from kcm.kubelet.types import is_critical_pod

_MIN_SHARES, _MAX_SHARES, _SHARES_PER_CORE = 2, 262144, 1024
_PERIOD = 100_000  # microseconds
_MIN_QUOTA = 1000
_SHELL = ("/bin/sh",)


def log_directory(logs: Path, pod: Pod) -> Path:
    """Returns the folder of the logs of a pod's containers, within `logs`."""
    return logs / f"{pod.namespace}_{pod.name}_{pod.uid}"


def name_host(pod: Pod) -> str:
    """Returns the host name of a pod, without its domain."""
    name = pod.spec.hostname_override or pod.spec.hostname or pod.name or ""
    return name[:63].rstrip("-.")


def name_domain(pod: Pod, cluster_domain: str) -> str:
    """Returns the domain of a pod that has a subdomain, else ""."""
    if not pod.spec.subdomain or pod.spec.hostname_override:
        return ""
    return f"{pod.spec.subdomain}.{pod.namespace}.svc.{cluster_domain}"


def build_sandbox_config(pod: Pod, attempt: int, logs: Path) -> SandboxConfig:
    """Returns the configuration of a pod's sandbox. `logs` is the folder of all pods' logs."""
    return SandboxConfig(
        name=pod.name or "",
        namespace=pod.namespace or "",
        uid=pod.uid or "",
        attempt=attempt,
        hostname=name_host(pod),
        log_directory=str(log_directory(logs, pod)),
        labels=labels.pod_labels(pod),
        annotations=dict(pod.annotations),
        host_network=bool(pod.spec.host_network),
        port_mappings=host_port_mappings(pod),
        isolation=build_sandbox_isolation(pod),
    )


def host_port_mappings(pod: Pod) -> list[PortMapping]:
    """Returns the host ports that the pod requests."""
    containers = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    return [
        PortMapping(port.container_port, port.host_port, port.protocol or "TCP", port.host_ip or "")
        for container in containers
        for port in container.ports or ()
        if port.host_port
    ]


@dataclass(frozen=True, kw_only=True)
class ContainerContext:
    """What a container's configuration depends on besides its pod.

    `memory_capacity` is the node's memory in bytes. `user` is that of a container whose pod names
    none. `has_images` says that a container without a command runs its image's. `seccomp_dir` is
    the node's folder of seccomp profiles. `target_id` is the container whose processes an ephemeral
    one sees.
    """

    memory_capacity: int
    user: ImageUser = field(default_factory=ImageUser)
    has_images: bool = False
    seccomp_dir: Path = Path("/var/lib/kubelet/seccomp")
    target_id: str = ""


def build_container_config(
    pod: Pod,
    container: Container,
    restarts: int,
    environment: Mapping[str, str],
    mounts: Sequence[Mount],
    *,
    context: ContainerContext,
) -> ContainerConfig:
    """Returns the configuration of a container.

    Raises ContainerConfigError if the user is root and runAsNonRoot forbids that, and for a
    security profile without a name.
    """
    security = determine_effective_security_context(pod, container)
    verify_run_as_non_root(pod, container, context.user)
    pod_context = pod.spec.security_context
    capabilities = security.capabilities or Capabilities()
    return ContainerConfig(
        name=container.name,
        attempt=restarts,
        image=container.image or "",
        command=expand_all(_command(container, context), environment),
        args=expand_all(container.args or (), environment),
        working_dir=container.working_dir or "",
        env=list(environment.items()),
        mounts=mounts,
        log_path=f"{container.name}/{restarts}.log",
        stdin=bool(container.stdin),
        stdin_once=bool(container.stdin_once),
        tty=bool(container.tty),
        resources=build_resources(pod, container, context.memory_capacity),
        run_as_user=security.run_as_user,
        run_as_group=security.run_as_group,
        supplemental_groups=list((pod_context and pod_context.supplemental_groups) or ()),
        privileged=bool(security.privileged),
        add_capabilities=capabilities.add or (),
        drop_capabilities=capabilities.drop or (),
        no_new_privileges=security.allow_privilege_escalation is False,
        isolation=build_container_isolation(
            pod, container, seccomp_dir=context.seccomp_dir, target_id=context.target_id
        ),
        termination_message_path=container.termination_message_path or "/dev/termination-log",
        termination_message_policy=container.termination_message_policy or "File",
        labels=labels.container_labels(pod, container),
        annotations=labels.container_annotations(pod, container, restarts),
    )


def _command(container: Container, context: ContainerContext) -> Sequence[str]:
    """Returns the command. Without images, an ephemeral container without one runs a shell, as the
    images with which pods are debugged do.
    """
    is_ephemeral = isinstance(container, EphemeralContainer)
    if is_ephemeral and not (container.command or container.args or context.has_images):
        return _SHELL
    return container.command or ()


def build_resources(pod: Pod, container: Container, memory_capacity: int) -> Resources:
    """Returns a container's limits and CPU shares.

    A missing CPU request is taken from the limit.
    """
    limits = container.resources.limits or {}
    cpu = limits.get("cpu")
    asked = (container.resources.requests or {}).get("cpu", cpu)
    memory = limits.get("memory")
    return Resources(
        memory_bytes=memory.value() if memory else None,
        cpu_shares=_cpu_shares(asked),
        cpu_quota=_cpu_quota(cpu) if cpu else None,
        cpu_period=_PERIOD,
        oom_score_adj=oom_score_adjustment(pod, container, memory_capacity),
    )


def build_pod_resources(pod: Pod) -> Resources:
    """Returns what all containers of a pod may use together.

    CPU and memory are limited where the pod has a limit of its own, or each container has one.

    Source: ResourceConfigForPod in pkg/kubelet/cm/helpers_linux.go, Kubernetes 1.36.
    """
    asked = pod_resources.requests_of(pod.spec).get("cpu")
    limits = pod_resources.limits_of(pod.spec)
    cpu, memory = (
        limits[name] if name in limits and _is_limited(pod.spec, name) else None
        for name in ("cpu", "memory")
    )
    return Resources(
        memory_bytes=memory.value() if memory else None,
        cpu_shares=_MIN_SHARES if qos_class(pod) == BEST_EFFORT else _cpu_shares(asked),
        cpu_quota=_cpu_quota(cpu) if cpu else None,
        cpu_period=_PERIOD,
    )


def _is_limited(spec: PodSpec, name: str) -> bool:
    if pod_resources.list_pod_level(spec, "limits").get(name):
        return True
    containers = (*spec.containers, *(spec.init_containers or ()))
    return all((container.resources.limits or {}).get(name) for container in containers)


def _cpu_quota(limit: Quantity) -> int:
    return max(limit.milli_value() * _PERIOD // 1000, _MIN_QUOTA)


def _cpu_shares(asked: Quantity | None) -> int:
    milli = asked.milli_value() if asked else 0
    return min(max(milli * _SHARES_PER_CORE // 1000, _MIN_SHARES), _MAX_SHARES)


# --- The OOM score adjustment of containers, which depends on their pod's quality-of-service class.
#
# Source: pkg/kubelet/qos/policy.go, Kubernetes 1.33.


_GUARANTEED_SCORE = -997
_BEST_EFFORT_SCORE = 1000


def oom_score_adjustment(pod: Pod, container: Container, capacity: int) -> int:
    """Returns the container's oom_score_adj: the higher it is, the sooner the kernel kills it.

    `capacity` is the node's memory in bytes.
    """
    quality = qos_class(pod)
    if is_critical_pod(pod) or quality == GUARANTEED:
        return _GUARANTEED_SCORE
    if quality == BEST_EFFORT:
        return _BEST_EFFORT_SCORE
    asked = (container.resources.requests or {}).get("memory")
    share = 1000 * (asked.value() if asked else 0) // max(capacity, 1)
    # At least one more than that of Guaranteed pods, and less than that of BestEffort pods.
    return min(max(1000 - share, 1000 + _GUARANTEED_SCORE), _BEST_EFFORT_SCORE - 1)
