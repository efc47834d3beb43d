"""The interface between the kubelet and a container runtime, in the shape of CRI.

Guarantees: every call may come from any thread and, where CRI says so, twice: stopping or removing
what is stopped or gone succeeds. Data is frozen; a list is cheap enough to be asked for each
second. An implementation keeps what it runs over a restart of the kubelet, so that everything is
found again by listing.

Does not guarantee an order of lists, nor that a container which is listed as running still runs.
Errors are `errors.ContainerRuntimeError` and its subclasses.

Source: staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self


class SandboxState(StrEnum):
    """Whether containers can be started in a sandbox."""

    READY = "READY"
    NOT_READY = "NOTREADY"


class RuntimeContainerState(StrEnum):
    """The phase of a container's one life; it never goes back."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    EXITED = "EXITED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class RuntimeVersion:
    """The runtime's name and version, which a node's status shows as `process://0.1.0`."""

    name: str
    version: str


@dataclass(frozen=True)
class RuntimeStatus:
    """Whether the runtime can run pods; `message` is why not.

    `limits` tells how limits are enforced: "cgroup-v2", "cgroup-v1", "rlimits" or "none".
    """

    ready: bool
    message: str = ""
    limits: str = "rlimits"


@dataclass(frozen=True)
class Resources:
    """What a container may use; None is no limit of its own."""

    memory_bytes: int | None = None
    cpu_shares: int | None = None  # weight among siblings, 1024 for one core requested
    cpu_quota: int | None = None  # microseconds of CPU in each period
    cpu_period: int = 100_000  # microseconds
    pids: int | None = None
    oom_score_adj: int | None = None  # -1000 to 1000


@dataclass(frozen=True)
class PortMapping:
    """A host port that a pod asks for; 0 as host port is none."""

    container_port: int
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = ""


@dataclass(frozen=True)
class SandboxConfig:
    """What the containers of one pod share."""

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


@dataclass(frozen=True)
class Sandbox:
    """A sandbox and its state. `ip` is "" once it is not ready."""

    id: str
    config: SandboxConfig
    state: SandboxState
    created_at: datetime
    ip: str = ""


@dataclass(frozen=True)
class Mount:
    """A file or folder of the host, and the path at which a container sees it.

    `root` is a folder of the host above which the path cannot be changed by users of pods; "" is
    the path itself.
    """

    host_path: str
    container_path: str
    read_only: bool = False
    root: str = ""


@dataclass(frozen=True)
class ContainerConfig:
    """What a container runs and with what.

    `log_path` is relative to the sandbox's log directory. `termination_message_path` is a path as
    the container sees it, `termination_message_policy` is "File" or "FallbackToLogsOnError"; the
    message itself becomes `ContainerStatus.message`.
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
    termination_message_path: str = ""
    termination_message_policy: str = "File"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RuntimeContainer:
    """A container as the list shows it."""

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
    """Everything about one container.

    An exit code of 128+n is the end by signal n. `reason` is "Completed", "Error" or "OOMKilled"
    once the container has exited, and "StartError" if it could not be started; `message` is the
    termination message or the error.
    """

    id: str
    sandbox_id: str
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


@dataclass(frozen=True)
class ContainerStats:
    """What a container uses. CPU is the sum since the container's start."""

    id: str
    at: datetime
    cpu_nanoseconds: int = 0
    memory_working_set_bytes: int = 0
    memory_usage_bytes: int = 0
    processes: int = 0


@dataclass(frozen=True)
class ExecResult:
    """What a command wrote and how it ended."""

    stdout: bytes
    stderr: bytes
    exit_code: int


class Stream(Protocol):
    """A running exec or attach, as file descriptors that the caller reads and writes.

    `stdin`, `stdout` and `stderr` are None if they were not asked for; with a terminal there is no
    stderr. Closing the stream ends an exec that still runs; an attached container runs on.
    """

    stdin: int | None
    stdout: int | None
    stderr: int | None

    def close_stdin(self) -> None:
        """Ends the input."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Sets the terminal's size; does nothing without one."""
        ...

    def wait(self, timeout: float | None = None) -> int | None:
        """Returns the exit code; None if the command still runs after `timeout` seconds."""
        ...

    def close(self) -> None:
        """Closes everything. May be called twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Runtime(Protocol):
    """Runs the containers of pods."""

    def version(self) -> RuntimeVersion: ...

    def status(self) -> RuntimeStatus: ...

    def run_pod_sandbox(self, config: SandboxConfig) -> str:
        """Creates what the pod's containers share; returns its id.

        Raises HostPortTaken if another pod has one of the host ports.
        """
        ...

    def stop_pod_sandbox(self, sandbox_id: str) -> None:
        """Kills what still runs in the sandbox, and frees its address and ports."""
        ...

    def remove_pod_sandbox(self, sandbox_id: str) -> None:
        """Removes the sandbox and its containers with all their files."""
        ...

    def list_pod_sandboxes(self) -> list[Sandbox]: ...

    def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        """Prepares a container; returns its id.

        Raises SandboxNotFound, and ContainerConfigError for a user or group that this node does not
        allow.
        """
        ...

    def start_container(self, container_id: str) -> None:
        """Starts a created container.

        Raises ContainerRuntimeError with a message for people; the container is then EXITED with
        the reason StartError and exit code 128.
        """
        ...

    def stop_container(self, container_id: str, grace_seconds: float) -> None:
        """Sends SIGTERM, and SIGKILL after the grace period; returns when the container has ended.

        A second call with a shorter grace period shortens that of the first.
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
        """Runs a command in a running container, for at most `timeout` seconds unless that is 0.

        Keeps 16 MiB of each output. Raises ExecTimeout after killing the command, and
        ContainerRuntimeError if the container does not run or the command cannot be started.
        """
        ...

    def exec(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        stdin: bool = False,
        stdout: bool = True,
        stderr: bool = True,
        tty: bool = False,
    ) -> Stream:
        """Starts a command in a running container. Raises ContainerRuntimeError."""
        ...

    def attach(
        self,
        container_id: str,
        *,
        stdin: bool = False,
        stdout: bool = True,
        stderr: bool = True,
    ) -> Stream:
        """Connects to the container's main process: to its output from now on, and to its input."""
        ...

    def port_forward(self, sandbox_id: str, port: int) -> int:
        """Connects to a TCP port of the pod; returns the descriptor of the stream socket.

        Raises ContainerRuntimeError if nothing listens there.
        """
        ...

    def container_stats(self, container_id: str) -> ContainerStats: ...
