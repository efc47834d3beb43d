"""Implements cri.Runtime with a container runtime that speaks CRI v1.

Guarantees: only sandboxes and containers with this kubelet's label are listed, so that two kubelets
on one runtime do not end each other's pods. What runs is found again after a restart of the kubelet
or of the runtime.

The resources that a container was made with are in an annotation, because runtimes report them only
since version 1.7 of containerd. Changes are kept in memory: a kubelet that starts anew makes them
again, which changes nothing.

Source: staging/src/k8s.io/cri-client/pkg/remote_runtime.go, Kubernetes 1.36.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grpc
from pydantic import TypeAdapter, ValidationError

from kcm import errors
from kcm.kubelet import cri
from kcm.kubelet.files.folders import remove_empty, remove_logs
from kcm.kubelet.runtime.cri import configs, statuses
from kcm.kubelet.runtime.cri.channel import TIMEOUT, CallFailed, RuntimeChannel
from kcm.kubelet.runtime.cri.messages import Message
from kcm.kubelet.runtime.pod_cgroups import PodCgroups
from kcm.kubelet.server.remotecommand_client import RemoteStream, open_port

OWNER = "kcm.dev/kubelet"
"""The label of sandboxes and containers whose value identifies the kubelet that made them."""
RESOURCES, LOG_DIRECTORY = "kcm.dev/resources", "kcm.dev/log-directory"  # annotations
_RESOURCES = TypeAdapter(cri.Resources)
_MOUNTS_IMAGES = (2, 1)  # the first version of containerd that does
_NOT_FOUND = grpc.StatusCode.NOT_FOUND


@dataclass(frozen=True)
class _Network:
    """What only the status of a sandbox has, and what does not change while it is ready."""

    ip: str
    in_node_network: bool


class CRIRuntime:
    """Runs pods in a container runtime. Thread-safe."""

    def __init__(
        self, channel: RuntimeChannel, *, owner: str, host_ip: str, cgroups: PodCgroups
    ) -> None:
        """`owner` is the value of the label OWNER. `host_ip` is the address of pods in the node's
        network.
        """
        self._channel = channel
        self._labels = {OWNER: owner}
        self._host_ip = host_ip
        self._cgroups = cgroups
        self._lock = threading.Lock()
        # A group must not be removed while a new sandbox of its pod is made.
        self._groups_lock = threading.Lock()
        self._starting: set[str] = set()  # pods whose sandboxes are being made
        self._networks: dict[str, _Network] = {}
        self._updated: dict[str, cri.Resources] = {}  # by container

    def version(self) -> cri.RuntimeVersion:
        answer = self._channel.call("Version", version="v1")
        return cri.RuntimeVersion(answer.runtime_name, answer.runtime_version)

    def status(self) -> cri.RuntimeStatus:
        answer = self._channel.call("Status")
        return statuses.convert_runtime_status(answer, self._cgroups.kind)

    # --- sandboxes

    def run_pod_sandbox(self, config: cri.SandboxConfig) -> str:
        if config.log_directory:
            _make_log_folder(Path(config.log_directory))
        try:
            with self._groups_lock:
                self._starting.add(config.uid)
                self._cgroups.make(config.uid, config.cgroup_parent, config.resources)
            answer = self._channel.call(
                "RunPodSandbox",
                deadline=2 * TIMEOUT,  # as upstream, since a network takes long to set up
                config=self._build_sandbox(config),
                runtime_handler=config.runtime_handler,
            )
        except errors.ContainerRuntimeError:
            self._starting.discard(config.uid)
            with suppress(CallFailed):  # what is left goes with the kubelet's next start
                self._clean_up(config.uid, config.log_directory)
            raise
        self._starting.discard(config.uid)
        return str(answer.pod_sandbox_id)

    def _build_sandbox(self, config: cri.SandboxConfig) -> Message:
        message = configs.build_sandbox(config, self._labels)
        message.annotations[LOG_DIRECTORY] = config.log_directory
        message.linux.cgroup_parent = self._cgroups.parent(config.uid, config.cgroup_parent)
        return message

    def stop_pod_sandbox(self, sandbox_id: str) -> None:
        self._call_on_present("StopPodSandbox", pod_sandbox_id=sandbox_id)

    def remove_pod_sandbox(self, sandbox_id: str) -> None:
        self.stop_pod_sandbox(sandbox_id)
        listed = self._list_sandboxes(id=sandbox_id)
        for container in self._list_containers(pod_sandbox_id=sandbox_id):
            self.remove_container(container.id)
        self._call_on_present("RemovePodSandbox", pod_sandbox_id=sandbox_id)
        with self._lock:
            self._networks.pop(sandbox_id, None)
        for removed in listed:
            self._clean_up(removed.metadata.uid, removed.annotations.get(LOG_DIRECTORY, ""))

    def _clean_up(self, uid: str, log_directory: str) -> None:
        """Removes the control group and the empty log folder of a pod without any sandbox."""
        with self._groups_lock:
            if uid in self._starting or uid in self._list_uids():
                return
            self._cgroups.remove(uid)
        if log_directory:
            remove_empty(Path(log_directory))

    def clean_up_groups(self) -> None:
        """Removes the control groups of pods that have no sandbox. Raises CallFailed."""
        uids = self._list_uids()
        for uid in self._cgroups.list_uids():
            if uid not in uids:
                self._cgroups.remove(uid)

    def _list_uids(self) -> set[str]:
        return {sandbox.metadata.uid for sandbox in self._list_sandboxes()}

    def list_pod_sandboxes(self) -> list[cri.Sandbox]:
        listed = self._list_sandboxes()
        with self._lock:
            for gone in self._networks.keys() - {sandbox.id for sandbox in listed}:
                del self._networks[gone]
        sandboxes = []
        for sandbox in listed:
            network = self._network(sandbox.id, ready=statuses.is_ready(sandbox))
            if network is not None:
                sandboxes.append(
                    statuses.convert_sandbox(
                        sandbox, ip=network.ip, host_network=network.in_node_network
                    )
                )
        return sandboxes

    def _list_sandboxes(self, **chosen: str) -> list[Message]:
        """Returns this kubelet's sandboxes that the fields of CRI's filter choose."""
        wanted = {"label_selector": self._labels, **chosen}
        return list(self._channel.call("ListPodSandbox", filter=wanted).items)

    def _network(self, sandbox_id: str, *, ready: bool) -> _Network | None:
        """Returns the network of a sandbox, None if the sandbox is gone."""
        with self._lock:
            seen = self._networks.get(sandbox_id)
        if seen is not None and (seen.ip or not ready):
            return seen
        try:
            answer = self._channel.call("PodSandboxStatus", pod_sandbox_id=sandbox_id)
        except CallFailed as error:
            if error.code is _NOT_FOUND:
                return None
            raise
        in_node = statuses.is_in_node_network(answer.status)
        network = _Network(self._host_ip if in_node else answer.status.network.ip, in_node)
        with self._lock:
            self._networks[sandbox_id] = network
        return network

    # --- containers

    def create_container(
        self, sandbox_id: str, config: cri.ContainerConfig, sandbox: cri.SandboxConfig
    ) -> str:
        if any(mount.image for mount in config.mounts):
            check_image_mounts(self.version())
        log = Path(sandbox.log_directory) / config.log_path
        annotations = {RESOURCES: _RESOURCES.dump_json(config.resources).decode()}
        users = sandbox.isolation.namespaces.userns_options
        message = configs.build_container(config, self._labels, annotations, users)
        _make_log_folder(log.parent)
        answer = self._channel.call(
            "CreateContainer",
            pod_sandbox_id=sandbox_id,
            config=message,
            # containerd 2.1 ends with a panic if this is missing.
            sandbox_config=self._build_sandbox(sandbox),
        )
        return str(answer.container_id)

    def start_container(self, container_id: str) -> None:
        self._call_container("StartContainer", container_id=container_id)

    def stop_container(self, container_id: str, grace_seconds: float) -> None:
        seconds = math.ceil(max(grace_seconds, 0))
        self._call_on_present(
            "StopContainer", TIMEOUT + seconds, container_id=container_id, timeout=seconds
        )

    def remove_container(self, container_id: str) -> None:
        try:
            log = self.container_status(container_id).log_path
        except errors.ContainerNotFound:
            return
        self._call_on_present("RemoveContainer", container_id=container_id)
        remove_logs(log)
        with self._lock:
            self._updated.pop(container_id, None)

    def list_containers(self) -> list[cri.RuntimeContainer]:
        return [statuses.convert_container(container) for container in self._list_containers()]

    def _list_containers(self, **chosen: str) -> list[Message]:
        """Returns this kubelet's containers that the fields of CRI's filter choose."""
        wanted = {"label_selector": self._labels, **chosen}
        return list(self._channel.call("ListContainers", filter=wanted).containers)

    def container_status(self, container_id: str) -> cri.RuntimeContainerStatus:
        status = self._call_container("ContainerStatus", container_id=container_id).status
        with self._lock:
            resources = self._updated.get(container_id)
        return statuses.convert_status(status, resources or _read_resources(status))

    def reopen_container_log(self, container_id: str) -> None:
        self._call_container("ReopenContainerLog", container_id=container_id)

    def update_container_resources(self, container_id: str, resources: cri.Resources) -> None:
        fields = configs.build_resources(resources)
        # Here 0 would mean that a limit stays as it is.
        fields["cpu_quota"] = fields["cpu_quota"] or -1
        fields["memory_limit_in_bytes"] = fields["memory_limit_in_bytes"] or -1
        self._call_container("UpdateContainerResources", container_id=container_id, linux=fields)
        with self._lock:
            self._updated[container_id] = resources

    def update_pod_sandbox_resources(self, config: cri.SandboxConfig) -> None:
        self._cgroups.update(config.uid, config.cgroup_parent, config.resources)

    def container_stats(self, container_id: str) -> cri.ContainerStats:
        answer = self._call_container("ContainerStats", container_id=container_id)
        return statuses.convert_stats(answer.stats)

    # --- inside of containers

    def exec_sync(
        self, container_id: str, command: Sequence[str], timeout: float
    ) -> cri.ExecResult:
        seconds = math.ceil(max(timeout, 0))
        try:
            answer = self._call_container(
                "ExecSync",
                TIMEOUT + seconds if seconds else None,
                container_id=container_id,
                cmd=command,
                timeout=seconds,
            )
        except CallFailed as error:
            if error.code is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise errors.ExecTimeout(error.message) from error
            raise
        return cri.ExecResult(answer.stdout, answer.stderr, answer.exit_code)

    def exec(
        self, container_id: str, command: Sequence[str], wanted: cri.StreamOptions
    ) -> cri.Stream:
        url = self._call_container(
            "Exec", container_id=container_id, cmd=command, **asdict(wanted)
        ).url
        return RemoteStream(url, wanted)

    def attach(self, container_id: str, wanted: cri.StreamOptions) -> cri.Stream:
        url = self._call_container("Attach", container_id=container_id, **asdict(wanted)).url
        return RemoteStream(url, wanted)

    def port_forward(self, sandbox_id: str, port: int) -> cri.PortConnection:
        url = self._channel.call("PortForward", pod_sandbox_id=sandbox_id, port=[port]).url
        return open_port(url, port)

    # --- calls

    def _call_container(
        self, name: str, deadline: float | None = TIMEOUT, **fields: Any
    ) -> Message:
        """Makes a call about a container. Raises ContainerNotFound and CallFailed."""
        try:
            return self._channel.call(name, deadline, **fields)
        except CallFailed as error:
            if error.code is _NOT_FOUND:
                raise errors.ContainerNotFound(error.message) from error
            raise

    def _call_on_present(self, name: str, deadline: float | None = TIMEOUT, **fields: Any) -> None:
        """Makes a call that succeeds as well if what it is about is gone. Raises CallFailed."""
        try:
            self._channel.call(name, deadline, **fields)
        except CallFailed as error:
            if error.code is not _NOT_FOUND:
                raise


def check_image_mounts(version: cri.RuntimeVersion) -> None:
    """Raises ContainerConfigError for a containerd that does not mount images.

    It would take the mount for one of a folder without a name. Other runtimes answer themselves.
    """
    numbers = re.match(r"v?(\d+)\.(\d+)", version.version)
    if version.name != "containerd" or numbers is None:
        return
    if (int(numbers[1]), int(numbers[2])) < _MOUNTS_IMAGES:
        raise errors.ContainerConfigError(
            f"image volumes need containerd 2.1, and this node has {version.version}"
        )


def _make_log_folder(folder: Path) -> None:
    """Makes a folder for logs. Raises ContainerRuntimeError."""
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise errors.ContainerRuntimeError(f"failed to create {folder}: {error}") from error


def _read_resources(status: Message) -> cri.Resources:
    """Returns the resources that a container was made with."""
    try:
        return _RESOURCES.validate_json(status.annotations.get(RESOURCES, "{}"))
    except ValidationError:
        return cri.Resources()
