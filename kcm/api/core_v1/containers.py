"""core/v1: containers, their resources, ports and mounts.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.core_v1.environment import EnvFromSource, EnvVar
from kcm.api.core_v1.handlers import Lifecycle, Probe
from kcm.api.core_v1.security import SecurityContext
from kcm.apimachinery.base import Bool, Int32, MergeKey, MergeSet, Model
from kcm.apimachinery.quantity import ResourceList


class ResourceClaim(Model):
    """One of the pod's resource claims, which a container uses."""

    name: str = ""
    request: str | None = None


class ResourceRequirements(Model):
    """The most that a container may use (limits), and what is reserved for it (requests)."""

    limits: ResourceList | None = None
    requests: ResourceList | None = None
    claims: Annotated[list[ResourceClaim] | None, MergeKey("name", patches=False)] = None


class ContainerResizePolicy(Model):
    """The restart policy of a container for changes of its request or limit of a resource."""

    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRuleOnExitCodes(Model):
    """The exit codes to which a restart rule applies: those in the list, or all others."""

    operator: str | None = None
    values: Annotated[list[Int32] | None, MergeSet(patches=False)] = None


class ContainerRestartRule(Model):
    """An action for a container that ended, by its exit code. The first rule that fits decides."""

    action: str | None = None
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ContainerPort(Model):
    """A port that a container listens on."""

    name: str | None = None
    host_port: Int32 | None = None
    container_port: Int32 = 0
    protocol: str | None = None
    host_ip: str | None = None


class VolumeMount(Model):
    """The path at which a volume is mounted inside a container."""

    name: str = ""
    read_only: Bool | None = None
    recursive_read_only: str | None = None
    mount_path: str = ""
    sub_path: str | None = None
    mount_propagation: str | None = None
    sub_path_expr: str | None = None


class VolumeDevice(Model):
    """The path at which a raw block volume appears inside a container, as a device."""

    name: str = ""
    device_path: str = ""


class Container(Model):
    """A container of a pod: its image, command and settings."""

    name: str = ""
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    working_dir: str | None = None
    ports: Annotated[
        list[ContainerPort] | None,
        MergeKey(
            "containerPort",
            ("containerPort", "protocol"),
            key_defaults=(("protocol", "TCP"),),
        ),
    ] = None
    env_from: list[EnvFromSource] | None = None
    env: Annotated[list[EnvVar] | None, MergeKey("name")] = None
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements)
    resize_policy: list[ContainerResizePolicy] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] | None = None
    volume_mounts: Annotated[list[VolumeMount] | None, MergeKey("mountPath")] = None
    volume_devices: Annotated[list[VolumeDevice] | None, MergeKey("devicePath")] = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    image_pull_policy: str | None = None
    security_context: SecurityContext | None = None
    stdin: Bool | None = None
    stdin_once: Bool | None = None
    tty: Bool | None = None


class EphemeralContainer(Container):
    """A container that is added to a running pod for debugging."""

    target_container_name: str | None = None
