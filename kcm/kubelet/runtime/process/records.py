"""Reads and writes the runtime's records on disk, which a later kubelet finds there.

`config.json` is written once, when a sandbox or container is created. `status` is written by the
supervisor (`wire.py`), and by the runtime only if the supervisor is gone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kcm.kubelet.cri import ContainerConfig, SandboxConfig
from kcm.kubelet.runtime.process import wire

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
