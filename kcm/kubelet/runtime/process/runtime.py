"""The process runtime: implements cri.Runtime with plain processes of this machine.

Guarantees: another instance on the same root folder finds everything that runs, by the records on
disk there. What was removed leaves no file, process, control group or address. Only one instance at
a time may use a folder.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC
from hashlib import sha256
from pathlib import Path

import kcm
from kcm.clock import RealClock
from kcm.errors import (
    ContainerConfigError,
    ContainerNotFound,
    ContainerRuntimeError,
    SandboxNotFound,
)
from kcm.kubelet import cri
from kcm.kubelet.files.folders import remove_logs, remove_tree
from kcm.kubelet.runtime.process import capabilities, cgroups, processes, records, usage
from kcm.kubelet.runtime.process.container_root import ContainerRoot, without_nul
from kcm.kubelet.runtime.process.held import HeldContainer
from kcm.kubelet.runtime.process.launches import launch_of
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.orphans import Children
from kcm.kubelet.runtime.process.records import HeldSandbox, Sandboxes
from kcm.kubelet.runtime.process.streams import ProcessStream, run_to_end
from kcm.kubelet.runtime.process.users import check_user

_RUNNING = cri.RuntimeContainerState.RUNNING
_SNAPSHOT = 0.5  # seconds for which one list of all processes is used for stats


class ProcessRuntime:
    """Runs the containers of pods as groups of processes with supervisors. Thread-safe."""

    def __init__(self, options: ProcessOptions) -> None:
        self._options = options
        self._clock = RealClock()
        self._folder = options.root / "containers"
        self._folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._cgroups = (
            cgroups.detect("kcm-" + sha256(os.fsencode(options.root.resolve())).hexdigest()[:8])
            if options.use_cgroups
            else cgroups.Cgroups(cgroups.NONE, {})
        )
        self._sandboxes = Sandboxes(options, self._cgroups, self._clock)
        self._children = Children(adopts=options.adopts_orphans)
        self._lock = threading.Lock()
        self._containers: dict[str, HeldContainer] = {}
        self._snapshot: tuple[float, dict[int, processes.Stat]] = (0.0, {})
        self._adopt_existing()

    def _adopt_existing(self) -> None:
        """Adopts the containers that an earlier kubelet started.

        Removes the folders of those without a readable record or a sandbox.
        """
        for folder in sorted(self._folder.iterdir()):
            record = records.read_container(folder)
            sandbox = self._sandboxes.find(record.sandbox_id) if record else None
            if record is None or sandbox is None:
                remove_tree(folder)
                continue
            view = self._view(folder, record.config, sandbox)
            self._containers[folder.name] = self._held(folder, record, view)

    def version(self) -> cri.RuntimeVersion:
        return cri.RuntimeVersion("process", kcm.__version__)

    def status(self) -> cri.RuntimeStatus:
        try:
            probe = self._folder / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            return cri.RuntimeStatus(False, f"cannot write: {error}", self._cgroups.kind)
        return cri.RuntimeStatus(True, "", self._cgroups.kind)

    def run_pod_sandbox(self, config: cri.SandboxConfig) -> str:
        return self._sandboxes.run(config)

    def stop_pod_sandbox(self, sandbox_id: str) -> None:
        for container in self._in(sandbox_id):
            container.stop(0)
        self._sandboxes.stop(sandbox_id)

    def remove_pod_sandbox(self, sandbox_id: str) -> None:
        self.stop_pod_sandbox(sandbox_id)
        for container in self._in(sandbox_id):
            self.remove_container(container.id)
        self._sandboxes.remove(sandbox_id)

    def list_pod_sandboxes(self) -> list[cri.Sandbox]:
        return self._sandboxes.list()

    def create_container(
        self, sandbox_id: str, config: cri.ContainerConfig, _: cri.SandboxConfig
    ) -> str:
        sandbox = self._ready(sandbox_id)
        check_user(config, self._options)
        capabilities.check(config, capabilities.read_available(), root=os.geteuid() == 0)
        container_id = uuid.uuid4().hex
        folder = self._folder / container_id
        record = records.ContainerRecord(
            sandbox_id=sandbox_id,
            config=config,
            created_at=self._clock.now().astimezone(UTC),
            log_path=self._log_path(sandbox, config),
            cgroup=f"{sandbox.record.cgroup}/{container_id}",
        )
        view = self._view(folder, config, sandbox)
        folder.mkdir(mode=0o711)
        try:
            view.argv()
            view.lay_out()
            records.write_container(folder, record)
        except (OSError, ContainerRuntimeError, ContainerConfigError) as error:
            remove_tree(folder)
            raise ContainerRuntimeError(f"failed to create {config.name}: {error}") from error
        with self._lock:
            self._containers[container_id] = self._held(folder, record, view)
        return container_id

    def start_container(self, container_id: str) -> None:
        container = self._container(container_id)
        sandbox = self._ready(container.record.sandbox_id)
        try:
            self._sandboxes.make_group(sandbox.record)
            launch = launch_of(container, self._cgroups, self._options)
        except (OSError, ContainerRuntimeError, ContainerConfigError) as error:
            container.record_exit(128, str(error))
            raise ContainerRuntimeError(f"failed to start {container_id}: {error}") from error
        container.start(launch)

    def stop_container(self, container_id: str, grace_seconds: float) -> None:
        with suppress(ContainerNotFound):
            self._container(container_id).stop(grace_seconds)

    def remove_container(self, container_id: str) -> None:
        try:
            container = self._container(container_id)
        except ContainerNotFound:
            return
        container.stop(0)
        container.wait_for_supervisor()
        for group in container.groups:
            cgroups.remove_tree(Path(group))
        remove_logs(container.record.log_path)
        remove_tree(container.folder)
        with self._lock:
            self._containers.pop(container_id, None)

    def list_containers(self) -> list[cri.RuntimeContainer]:
        return [container.to_container() for container in self._all()]

    def container_status(self, container_id: str) -> cri.RuntimeContainerStatus:
        return self._container(container_id).status()

    def exec_sync(
        self, container_id: str, command: Sequence[str], timeout: float
    ) -> cri.ExecResult:
        wanted = cri.StreamOptions(stdout=True, stderr=True)
        with closing(self.exec(container_id, command, wanted)) as stream:
            return run_to_end(stream, timeout)

    def exec(
        self, container_id: str, command: Sequence[str], wanted: cri.StreamOptions
    ) -> ProcessStream:
        container = self._find_running(container_id)
        if not command:
            raise ContainerRuntimeError("no command to execute")
        words = without_nul(container.view.fill_references(word) for word in command)
        stream = ProcessStream(container.folder / records.SOCKET)
        stream.exec(words, wanted)
        return stream

    def attach(self, container_id: str, wanted: cri.StreamOptions) -> ProcessStream:
        container = self._find_running(container_id)
        stream = ProcessStream(container.folder / records.SOCKET)
        has_stderr = wanted.stderr and not container.record.config.tty
        stream.attach(replace(wanted, stderr=has_stderr))
        return stream

    def port_forward(self, sandbox_id: str, port: int) -> cri.PortConnection:
        sandbox = self._ready(sandbox_id)
        address = (sandbox.record.ip, port)
        try:
            return cri.PortConnection(socket.create_connection(address, timeout=10).detach())
        except OSError as error:
            raise ContainerRuntimeError(
                f"failed to connect to {address[0]}:{port}: {error.strerror or error}"
            ) from error

    def update_container_resources(self, container_id: str, resources: cri.Resources) -> None:
        container = self._find_running(container_id)
        try:
            if self._cgroups.kind != cgroups.NONE and container.record.cgroup:
                self._cgroups.update(container.record.cgroup, resources)
            container.set_resources(resources)
        except OSError as error:
            raise ContainerRuntimeError(f"failed to resize {container_id}: {error}") from error

    def update_pod_sandbox_resources(self, config: cri.SandboxConfig) -> None:
        """Does nothing: whole pods are not limited."""

    def container_stats(self, container_id: str) -> cri.ContainerStats:
        container = self._container(container_id)
        groups = self._cgroups.paths(container.record.cgroup)
        used = usage.of_groups(groups) if container.state() is _RUNNING else usage.ProcessUsage()
        if used is None:
            record = container.status_record()
            used = usage.of_descendants(record.supervisor if record else 0, self._processes())
        return cri.ContainerStats(
            id=container_id,
            at=self._clock.now(),
            cpu_nanoseconds=used.cpu,
            memory_working_set_bytes=used.working_set,
            memory_usage_bytes=used.usage,
            processes=used.processes,
        )

    def _processes(self) -> dict[int, processes.Stat]:
        with self._lock:
            if time.monotonic() - self._snapshot[0] > _SNAPSHOT:
                self._snapshot = (time.monotonic(), processes.snapshot())
            return self._snapshot[1]

    def _held(
        self, folder: Path, record: records.ContainerRecord, view: ContainerRoot
    ) -> HeldContainer:
        groups = self._cgroups.paths(record.cgroup) if record.cgroup else ()
        return HeldContainer(folder, record, view, self._children, groups)

    def _view(
        self, folder: Path, config: cri.ContainerConfig, sandbox: HeldSandbox
    ) -> ContainerRoot:
        return ContainerRoot(
            root=folder / records.ROOT,
            config=config,
            container_id=folder.name,
            hostname=sandbox.record.config.hostname or sandbox.record.config.name,
            pod_ip=sandbox.record.ip,
        )

    def _log_path(self, sandbox: HeldSandbox, config: cri.ContainerConfig) -> str:
        if not config.log_path:
            return ""
        path = Path(sandbox.record.config.log_directory) / config.log_path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(path.absolute())

    def _all(self) -> list[HeldContainer]:
        with self._lock:
            return list(self._containers.values())

    def _in(self, sandbox_id: str) -> list[HeldContainer]:
        return [container for container in self._all() if container.record.sandbox_id == sandbox_id]

    def _container(self, container_id: str) -> HeldContainer:
        with self._lock:
            container = self._containers.get(container_id)
        if container is None:
            raise ContainerNotFound(f"there is no container {container_id}")
        return container

    def _find_running(self, container_id: str) -> HeldContainer:
        container = self._container(container_id)
        if container.state() is not _RUNNING:
            raise ContainerRuntimeError(f"container {container_id} is not running")
        return container

    def _ready(self, sandbox_id: str) -> HeldSandbox:
        sandbox = self._sandboxes.find(sandbox_id)
        if sandbox is None:
            raise SandboxNotFound(f"there is no pod sandbox {sandbox_id}")
        if sandbox.stopped:
            raise ContainerRuntimeError(f"the pod sandbox {sandbox_id} is not ready")
        return sandbox
