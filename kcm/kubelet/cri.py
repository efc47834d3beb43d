"""The interface between the kubelet and a container runtime, in the shape of CRI.

Guarantees: any thread may make any call. Stopping what is stopped and removing what is gone
succeeds, as in CRI. All data is frozen. Lists are cheap enough to be requested every second. What
an implementation runs survives a restart of the kubelet, and lists show it afterwards.

Does not guarantee an order of lists, nor that a container that is listed as running still runs.
Errors are `errors.ContainerRuntimeError` and its subclasses.

Source: staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kcm.kubelet.isolation import ContainerIsolation, DNSConfig, SandboxIsolation


class SandboxState(StrEnum):
    """Whether containers can be started in a sandbox."""

    READY = "READY"
    NOT_READY = "NOTREADY"


class RuntimeContainerState(StrEnum):
    """The state of one attempt of a container. It never goes back to an earlier state."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    EXITED = "EXITED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class RuntimeVersion:
    """The runtime's name and version, which a node's status shows as `process://0.2.0`."""

    name: str
    version: str


@dataclass(frozen=True)
class RuntimeStatus:
    """Whether the runtime can run pods; `message` says why it cannot.

    `limits` names how resource limits are enforced: "cgroup-v2", "cgroup-v1", "rlimits" or "none".
    `network_fault` is the runtime's own word on why pods get no network, "" if they do.
    `user_namespaces` are the runtime handlers that can give pods users of their own.
    """

    ready: bool
    message: str = ""
    limits: str = "rlimits"
    network_fault: str = ""
    user_namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Resources:
    """The resources that a container or a sandbox may use. None means no limit of its own."""

    memory_bytes: int | None = None
    cpu_shares: int | None = None  # weight among siblings, 1024 for one core requested
    cpu_quota: int | None = None  # microseconds of CPU in each period
    cpu_period: int = 100_000  # microseconds
    pids: int | None = None
    oom_score_adj: int | None = None  # -1000 to 1000


@dataclass(frozen=True)
class PortMapping:
    """A container port, and the host port that the pod requests for it, 0 if it requests none."""

    container_port: int
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = ""


@dataclass(frozen=True)
class SandboxConfig:
    """The configuration of a sandbox: what the containers of one pod share."""

    name: str
    namespace: str
    uid: str
    attempt: int = 0
    hostname: str = ""
    log_directory: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    host_network: bool = False
    port_mappings: Sequence[PortMapping] = ()
    cgroup_parent: str = ""  # relative to the kubelet's own cgroup
    resources: Resources = Resources()
    isolation: SandboxIsolation = field(default_factory=SandboxIsolation)
    dns: DNSConfig | None = None  # None: as the runtime likes
    runtime_handler: str = ""  # "" is the runtime's default


@dataclass(frozen=True)
class Sandbox:
    """A sandbox and its state. `ip` is "" once the sandbox is not ready."""

    id: str
    config: SandboxConfig
    state: SandboxState
    created_at: datetime
    ip: str = ""


@dataclass(frozen=True)
class Mount:
    """A file or folder of the host, and the path at which a container sees it.

    `root` is a folder of the host that contains `host_path`, and whose own path users of pods
    cannot change; "" stands for `host_path` itself. `propagation` is "", "HostToContainer" or
    "Bidirectional": mounts below it that come later on one side show on the other, too.

    A mount of an image has the image's name, and a path in it, instead of a file or folder.
    """

    host_path: str
    container_path: str
    read_only: bool = False
    root: str = ""
    propagation: str = ""
    recursive_read_only: bool = False  # mounts below it are read-only as well
    image: str = ""
    image_sub_path: str = ""


@dataclass(frozen=True)
class ContainerConfig:
    """The command of a container, and everything that it runs with.

    `log_path` is relative to the sandbox's log directory. `termination_message_path` is a path as
    the container sees it, `termination_message_policy` is "File" or "FallbackToLogsOnError". The
    termination message itself is `RuntimeContainerStatus.message`.
    """

    name: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    attempt: int = 0  # the restart count
    image: str = ""
    working_dir: str = ""
    env: Sequence[tuple[str, str]] = ()
    mounts: Sequence[Mount] = ()
    log_path: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    resources: Resources = Resources()
    run_as_user: int | None = None
    run_as_group: int | None = None
    supplemental_groups: Sequence[int] = ()
    privileged: bool = False
    add_capabilities: Sequence[str] = ()  # with or without the prefix CAP_, or ALL
    drop_capabilities: Sequence[str] = ()
    no_new_privileges: bool = False  # nothing that it executes has more privileges than itself
    isolation: ContainerIsolation = field(default_factory=ContainerIsolation)
    termination_message_path: str = ""
    termination_message_policy: str = "File"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RuntimeContainer:
    """A container as `Runtime.list_containers` returns it."""

    id: str
    sandbox_id: str
    name: str
    attempt: int
    image: str
    state: RuntimeContainerState
    created_at: datetime
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RuntimeContainerStatus:
    """The status of one container.

    `config` has at least the name, attempt, image, labels, annotations, mounts and, where the
    runtime says them, resources. `image_id` is the image's digest, "" in a runtime without images.
    The exit code is 128+n if signal n killed the container. `reason` is "Completed", "Error" or
    "OOMKilled" once the container has exited, and "StartError" if it could not be started;
    `message` is the error, and the termination message where the runtime reads it itself.
    """

    id: str
    config: ContainerConfig
    state: RuntimeContainerState
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    pid: int = 0
    log_path: str = ""  # absolute
    image_id: str = ""


@dataclass(frozen=True)
class ContainerStats:
    """The resources that a container uses. CPU time is the sum since the container's start."""

    id: str
    at: datetime
    cpu_nanoseconds: int = 0
    memory_working_set_bytes: int = 0
    memory_usage_bytes: int = 0
    processes: int = 0


@dataclass(frozen=True)
class ExecResult:
    """The output and the exit code of a command that has exited."""

    stdout: bytes
    stderr: bytes
    exit_code: int


@dataclass(frozen=True)
class StreamOptions:
    """The streams of an exec or attach that a client requests. With a terminal, `stderr` is off."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Stream(Protocol):
    """A running exec or attach, as file descriptors that the caller reads and writes.

    `stdin`, `stdout` and `stderr` are None if they were not requested; with a terminal there is no
    stderr. Closing the stream kills the command of an exec; an attached container runs on.
    """

    stdin: int | None
    stdout: int | None
    stderr: int | None

    def close_stdin(self) -> None:
        """Closes the input, so that the command reads end of file."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Sets the terminal's size; does nothing without a terminal."""
        ...

    def wait(self, timeout: float | None = None) -> int | None:
        """Returns the exit code; None if the command still runs after `timeout` seconds.

        Raises ContainerRuntimeError if the runtime could not run the command, or has left.
        """
        ...

    def close(self) -> None:
        """Closes all descriptors. May be called twice."""
        ...


@dataclass(frozen=True)
class PortConnection:
    """A connection to a port of a pod, as the descriptor of a socket that the caller closes.

    `find_fault` says, once the socket is at its end, why the runtime ended the connection, "" if
    the pod did.
    """

    descriptor: int
    find_fault: Callable[[], str] = lambda: ""


class Runtime(Protocol):
    """A container runtime: runs the sandboxes and containers of pods on this node."""

    def version(self) -> RuntimeVersion: ...

    def status(self) -> RuntimeStatus: ...

    def run_pod_sandbox(self, config: SandboxConfig) -> str:
        """Creates a sandbox and returns its id.

        Raises HostPortTaken if another pod has one of the host ports.
        """
        ...

    def stop_pod_sandbox(self, sandbox_id: str) -> None:
        """Kills the sandbox's running containers, and frees its address and host ports."""
        ...

    def remove_pod_sandbox(self, sandbox_id: str) -> None:
        """Removes the sandbox and its containers with all their files."""
        ...

    def list_pod_sandboxes(self) -> list[Sandbox]: ...

    def create_container(
        self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig
    ) -> str:
        """Creates a container without starting it, and returns its id.

        `sandbox` is the configuration that the sandbox was made with.

        Raises SandboxNotFound, and ContainerConfigError for a user, group or capability that this
        node does not allow.
        """
        ...

    def start_container(self, container_id: str) -> None:
        """Starts a created container.

        Raises ContainerRuntimeError with a message for people; the container is then EXITED with
        the reason StartError and exit code 128.
        """
        ...

    def stop_container(self, container_id: str, grace_seconds: float) -> None:
        """Sends SIGTERM, and SIGKILL after the grace period. Returns when the container has exited.

        A second call with a shorter grace period shortens that of the first. Runtimes may take
        whole seconds only.
        """
        ...

    def remove_container(self, container_id: str) -> None:
        """Removes the container and its logs; kills it if it still runs."""
        ...

    def list_containers(self) -> list[RuntimeContainer]: ...

    def container_status(self, container_id: str) -> RuntimeContainerStatus:
        """Returns the container's status. Raises ContainerNotFound."""
        ...

    def exec_sync(self, container_id: str, command: Sequence[str], timeout: float) -> ExecResult:
        """Runs a command in a running container, for at most `timeout` seconds; 0 means no limit.

        Keeps up to 16 MiB each of stdout and stderr. Raises ExecTimeout after killing the command,
        and ContainerRuntimeError if the container does not run or the command cannot be started.
        """
        ...

    def exec(self, container_id: str, command: Sequence[str], wanted: StreamOptions) -> Stream:
        """Starts a command in a running container. Raises ContainerRuntimeError."""
        ...

    def attach(self, container_id: str, wanted: StreamOptions) -> Stream:
        """Connects to a container's main process: to its input, and to its output from now on.

        `wanted.tty` says whether the container has a terminal. Raises ContainerRuntimeError.
        """
        ...

    def port_forward(self, sandbox_id: str, port: int) -> PortConnection:
        """Connects to a TCP port of the pod.

        Raises ContainerRuntimeError if it is known at once that nothing listens on the port.
        """
        ...

    def update_container_resources(self, container_id: str, resources: Resources) -> None:
        """Changes the resources that a running container may use."""
        ...

    def update_pod_sandbox_resources(self, config: SandboxConfig) -> None:
        """Changes what the containers of a sandbox may use together, as `config` says.

        Does nothing in a runtime that does not limit whole pods.
        """
        ...

    def container_stats(self, container_id: str) -> ContainerStats: ...
