"""Reads and writes the runtime's records on disk, which a later kubelet finds there.

`config.json` is written once, when a sandbox or container is created. `status` is written by the
supervisor (`wire.py`), and by the runtime only if the supervisor is gone.
"""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kcm.clock import Clock
from kcm.errors import HostPortTaken
from kcm.kubelet.cri import ContainerConfig, Sandbox, SandboxConfig, SandboxState
from kcm.kubelet.files.folders import remove_empty, remove_tree
from kcm.kubelet.host_ports import find_conflict
from kcm.kubelet.runtime.process import wire
from kcm.kubelet.runtime.process.addresses import Addresses, available
from kcm.kubelet.runtime.process.cgroups import Cgroups
from kcm.kubelet.runtime.process.options import ProcessOptions

CONFIG, STATUS, SOCKET, ROOT, LOG = "config.json", "status", "socket", "root", "supervisor.log"


@dataclass(frozen=True)
class SandboxRecord:
    """The record of a sandbox."""

    config: SandboxConfig
    created_at: datetime
    ip: str
    cgroup: str = ""  # relative to the kubelet's own control group


@dataclass(frozen=True)
class ContainerRecord:
    """The record of a container."""

    sandbox_id: str
    config: ContainerConfig
    created_at: datetime
    log_path: str = ""
    cgroup: str = ""


@dataclass(frozen=True)
class StatusRecord:
    """The content of a status file. `exit_code` and `finished` are valid once `exited` is set.

    Pids and start times of the supervisor are as in `processes`.
    """

    exited: bool
    supervisor: int
    supervisor_start: int
    boot: str
    pid: int
    started: int  # nanoseconds since 1970
    finished: int = 0
    exit_code: int = 0
    oom_kills: int = 0
    error: str = ""


_SANDBOX = TypeAdapter(SandboxRecord)
_CONTAINER = TypeAdapter(ContainerRecord)


def write_sandbox(folder: Path, record: SandboxRecord) -> None:
    _replace(folder / CONFIG, _SANDBOX.dump_json(record))


def read_sandbox(folder: Path) -> SandboxRecord | None:
    """Returns the record, or None if the creation of the sandbox was not completed."""
    try:
        return _SANDBOX.validate_json((folder / CONFIG).read_bytes())
    except (OSError, ValidationError):
        return None


def write_container(folder: Path, record: ContainerRecord) -> None:
    _replace(folder / CONFIG, _CONTAINER.dump_json(record))


def read_container(folder: Path) -> ContainerRecord | None:
    """Returns the record, or None if the creation of the container was not completed."""
    try:
        return _CONTAINER.validate_json((folder / CONFIG).read_bytes())
    except (OSError, ValidationError):
        return None


def read_status(folder: Path) -> StatusRecord | None:
    """Returns the content of the status file, or None before the start."""
    try:
        fields = wire.decode((folder / STATUS).read_bytes())
    except OSError:
        return None
    return StatusRecord(
        exited=wire.get_text(fields, "state") == "exited",
        supervisor=wire.get_number(fields, "supervisor"),
        supervisor_start=wire.get_number(fields, "supervisor_start"),
        boot=wire.get_text(fields, "boot"),
        pid=wire.get_number(fields, "pid"),
        started=wire.get_number(fields, "started"),
        finished=wire.get_number(fields, "finished"),
        exit_code=wire.get_number(fields, "exit_code"),
        oom_kills=wire.get_number(fields, "oom_kills"),
        error=wire.get_text(fields, "error"),
    )


def write_exit(folder: Path, *, started: int, finished: int, exit_code: int, error: str) -> None:
    """Writes the status of a container whose supervisor could not write it.

    Times are nanoseconds since 1970.
    """
    fields = [
        ("state", "exited"),
        ("started", str(started)),
        ("finished", str(finished)),
        ("exit_code", str(exit_code)),
        ("error", error),
    ]
    _replace(folder / STATUS, wire.encode(fields))


def moment(nanoseconds: int) -> datetime | None:
    """Returns a time of the status file, in nanoseconds, as a datetime; None for 0."""
    if not nanoseconds:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)


def _replace(path: Path, data: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
    new.replace(path)


# --- Pod sandboxes: each has an address, host ports and a control group, but no process of its own.


_STOPPED = "stopped"  # the name of an empty file in the folders of stopped sandboxes


@dataclass(frozen=True)
class HeldSandbox:
    """A sandbox of the process runtime and its folder."""

    folder: Path
    record: SandboxRecord

    @property
    def stopped(self) -> bool:
        return (self.folder / _STOPPED).exists()

    def to_sandbox(self) -> Sandbox:
        """Returns the sandbox as `Runtime.list_pod_sandboxes` shows it."""
        stopped = self.stopped
        return Sandbox(
            id=self.folder.name,
            config=self.record.config,
            state=SandboxState.NOT_READY if stopped else SandboxState.READY,
            created_at=self.record.created_at,
            ip="" if stopped else self.record.ip,
        )


class Sandboxes:
    """The sandboxes of one runtime. Thread-safe."""

    def __init__(self, options: ProcessOptions, cgroups: Cgroups, clock: Clock) -> None:
        self._options = options
        self._cgroups = cgroups
        self._clock = clock
        self._folder = options.root / "sandboxes"
        self._folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._addresses = Addresses(options.addresses)
        self._own_addresses = options.own_addresses and available()
        self._lock = threading.Lock()
        # A group must not be removed while a new sandbox of its pod is made.
        self._groups_lock = threading.Lock()
        self._held: dict[str, HeldSandbox] = {}
        self._read_existing()

    def _read_existing(self) -> None:
        for folder in sorted(self._folder.iterdir()):
            record = read_sandbox(folder)
            if record is None:
                remove_tree(folder)
            else:
                self._held[folder.name] = HeldSandbox(folder, record)

    def run(self, config: SandboxConfig) -> str:
        """Creates a sandbox; returns its id. Raises HostPortTaken and ContainerRuntimeError."""
        with self._groups_lock, self._lock:
            self._check_ports(config)
            folder = self._folder / uuid.uuid4().hex
            folder.mkdir(mode=0o711)
            try:
                record = self._record(config, folder)
                write_sandbox(folder, record)
            except BaseException:  # it is raised again; an incomplete sandbox must not stay
                remove_tree(folder)
                raise
            self._held[folder.name] = HeldSandbox(folder, record)
        return folder.name

    def _check_ports(self, config: SandboxConfig) -> None:
        for other in self._held.values():
            conflict = find_conflict(config.port_mappings, other.record.config.port_mappings)
            if conflict and not other.stopped:
                name = f"{other.record.config.namespace}/{other.record.config.name}"
                raise HostPortTaken(
                    f"host port {conflict.host_port}/{conflict.protocol} is taken by pod {name}"
                )

    def _record(self, config: SandboxConfig, folder: Path) -> SandboxRecord:
        own = self._own_addresses and not config.host_network
        ip = self._addresses.take(folder) if own else self._options.host_ip
        parent = config.cgroup_parent.strip("/")
        cgroup = f"{parent}/pod{config.uid}".lstrip("/")
        created_at = self._clock.now().astimezone(UTC)
        record = SandboxRecord(config, created_at, ip, cgroup)
        self.make_group(record)
        return record

    def make_group(self, record: SandboxRecord) -> None:
        """Makes the control group of a sandbox's pod, with its limits. Raises OSError.

        The group of an older sandbox may be gone: no group survives the machine's restart.
        """
        resources = record.config.resources
        pids = resources.pids or self._options.pod_max_pids
        self._cgroups.make(record.cgroup, replace(resources, pids=pids))

    def find(self, sandbox_id: str) -> HeldSandbox | None:
        with self._lock:
            return self._held.get(sandbox_id)

    def list(self) -> list[Sandbox]:
        with self._lock:
            held = [*self._held.values()]
        return [sandbox.to_sandbox() for sandbox in held]

    def stop(self, sandbox_id: str) -> None:
        """Stops a sandbox whose containers have exited.

        Frees its address and host ports, and removes its pod's control group unless another sandbox
        of the pod is ready.
        """
        sandbox = self.find(sandbox_id)
        if sandbox is not None and not sandbox.stopped:
            (sandbox.folder / _STOPPED).touch()
            self._addresses.release(sandbox.record.ip, sandbox.folder)
            self._remove_group(sandbox.record.cgroup)

    def remove(self, sandbox_id: str) -> None:
        """Removes a stopped sandbox: its folder, and the empty folders of its pod's logs.

        What another sandbox of the same pod uses stays.
        """
        with self._lock:
            sandbox = self._held.pop(sandbox_id, None)
            if sandbox is None:
                return
            others = [other.record for other in self._held.values()]
        self._remove_group(sandbox.record.cgroup)  # a kubelet may have died before it could
        remove_tree(sandbox.folder)
        logs = sandbox.record.config.log_directory
        if logs and logs not in {other.config.log_directory for other in others}:
            remove_empty(Path(logs))

    def _remove_group(self, cgroup: str) -> None:
        """Removes a control group that no ready sandbox uses."""
        with self._groups_lock:
            with self._lock:
                held = [*self._held.values()]
            if not any(each.record.cgroup == cgroup and not each.stopped for each in held):
                self._cgroups.remove(cgroup)
