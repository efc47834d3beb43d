"""core/v1: containers, their resources, probes and statuses.

What kcm does not read (env sources, security contexts, lifecycle hooks) stays
loosely typed. Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator

from kcm.api.base import Bool, Int32, Int64, JsonObject, MergeKey, Model
from kcm.api.quantity import ResourceList
from kcm.api.times import Time


def _int_or_string(value: Any) -> int | str:
    if isinstance(value, str) or (
        isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
    ):
        return value
    raise ValueError("must be an int32 or a string")


IntOrString = Annotated[int | str, PlainValidator(_int_or_string)]


class ResourceRequirements(Model):
    """What a container may use at most (limits) and is promised (requests)."""

    limits: ResourceList | None = None
    requests: ResourceList | None = None
    claims: list[JsonObject] | None = None


class ContainerPort(Model):
    """A port that a container listens on."""

    name: str | None = None
    host_port: Int32 | None = None
    container_port: Int32 = 0
    protocol: str | None = None
    host_ip: str | None = None


class EnvVar(Model):
    """A variable in a container's environment."""

    name: str = ""
    value: str | None = None
    value_from: JsonObject | None = None


class VolumeMount(Model):
    """Where a volume appears inside a container."""

    name: str = ""
    mount_path: str = ""
    read_only: Bool | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None
    mount_propagation: str | None = None


class ExecAction(Model):
    """A command to run inside the container."""

    command: list[str] | None = None


class HTTPGetAction(Model):
    """An HTTP GET request."""

    path: str | None = None
    port: IntOrString = 0
    host: str | None = None
    scheme: str | None = None
    http_headers: list[JsonObject] | None = None


class TCPSocketAction(Model):
    """A TCP connection."""

    port: IntOrString = 0
    host: str | None = None


class GRPCAction(Model):
    """A gRPC health check."""

    port: Int32 = 0
    service: str | None = None


class Probe(Model):
    """A check of a container's health, and how often it runs (seconds)."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: Int32 | None = None
    timeout_seconds: Int32 | None = None
    period_seconds: Int32 | None = None
    success_threshold: Int32 | None = None
    failure_threshold: Int32 | None = None
    termination_grace_period_seconds: Int64 | None = None


class Container(Model):
    """One container of a pod."""

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
    env_from: list[JsonObject] | None = None
    env: Annotated[list[EnvVar] | None, MergeKey("name")] = None
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements)
    resize_policy: list[JsonObject] | None = None
    restart_policy: str | None = None
    volume_mounts: Annotated[list[VolumeMount] | None, MergeKey("mountPath")] = None
    volume_devices: Annotated[list[JsonObject] | None, MergeKey("devicePath")] = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: JsonObject | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    image_pull_policy: str | None = None
    security_context: JsonObject | None = None
    stdin: Bool | None = None
    stdin_once: Bool | None = None
    tty: Bool | None = None


class ContainerStateWaiting(Model):
    """Why a container is not running yet."""

    reason: str | None = None
    message: str | None = None


class ContainerStateRunning(Model):
    """Since when a container runs."""

    started_at: Time | None = None


class ContainerStateTerminated(Model):
    """How a container ended."""

    exit_code: Int32 = 0
    signal: Int32 | None = None
    reason: str | None = None
    message: str | None = None
    started_at: Time | None = None
    finished_at: Time | None = None
    container_id: str | None = None


class ContainerState(Model):
    """Exactly one of waiting, running and terminated; none means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Model):
    """What the kubelet last saw of a container."""

    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    ready: Bool = False
    restart_count: Int32 = 0
    image: str = ""
    image_id: str = ""
    container_id: str | None = None
    started: Bool | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None
