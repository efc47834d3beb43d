"""One container of the process runtime: its folder, its supervisor and its status."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import structlog

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.cri import (
    Resources,
    RuntimeContainer,
    RuntimeContainerState,
    RuntimeContainerStatus,
)
from kcm.kubelet.runtime.process import processes, records, supervisor, termination
from kcm.kubelet.runtime.process.client import SupervisorConnection
from kcm.kubelet.runtime.process.container_root import MARK, ContainerRoot
from kcm.kubelet.runtime.process.orphans import Children
from kcm.kubelet.runtime.process.records import ContainerRecord, StatusRecord
from kcm.kubelet.runtime.process.users import identity_of
from kcm.kubelet.runtime.process.wire import encode

log = structlog.get_logger("kcm.kubelet")

SUPERVISOR = Path(supervisor.__file__).with_name("__main__.py")

# The interpreter may need it to find its libraries; no other variables are passed on.
_NEEDED = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}

LOST = "the container's supervisor was killed, and with it the container"
_LOST_CODE = 137  # as upstream's ContainerStatusUnknown
_SWEEP = 10.0  # seconds after which processes that cannot be killed are left behind
_LATE = 30.0  # seconds after the grace period until `stop` gives up


class HeldContainer:
    """A container whose state is on disk or known to its supervisor. Thread-safe."""

    def __init__(
        self,
        folder: Path,
        record: ContainerRecord,
        view: ContainerRoot,
        children: Children,
        groups: Sequence[Path] = (),
    ) -> None:
        """`groups` are the folders of the container's control groups, if it has any."""
        self.id = folder.name
        self.folder = folder
        self.record = record
        self.view = view
        self._children = children
        self.groups = [str(group) for group in groups]
        self._supervisor = 0  # the supervisor's pid, while it is a child of this process
        self._seen: tuple[int, StatusRecord] | None = None  # the file's mtime and its content
        self._lock = threading.Lock()
        self._starting = False

    def start(self, launch: list[tuple[str, str]]) -> None:
        """Starts the container under a supervisor of its own. `launch` is the launch record.

        Raises ContainerRuntimeError.
        """
        with self._lock:
            if self._starting or self._status() is not None:
                raise ContainerRuntimeError(f"container {self.id} was started before")
            self._starting = True
        try:
            reply = self._supervise(launch)
        except OSError as error:  # such as too many processes
            reply = f"its supervisor could not be started: {error.strerror}"
        if reply != "ok":
            if self.status_record() is None:
                self.record_exit(128, reply)
            raise ContainerRuntimeError(f"failed to start container {self.id}: {reply}")

    def _supervise(self, launch: list[tuple[str, str]]) -> str:
        """Starts the supervisor, sends it the launch record and returns its reply."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        log = os.open(self.folder / records.LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        streams = [
            (os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate((theirs_in, theirs_out, log))
        ]
        command = [sys.executable, "-I", "-S", "-E", str(SUPERVISOR), str(self.folder)]
        try:
            self._supervisor = self._children.start(
                lambda: os.posix_spawn(
                    command[0], command, _NEEDED, file_actions=streams, setsid=True, setsigmask=[]
                )
            )
        finally:
            for fd in (theirs_in, theirs_out, log):
                os.close(fd)
        with os.fdopen(ours_in, "wb") as stdin, os.fdopen(ours_out, "rb") as stdout:
            try:
                stdin.write(encode(launch))
                stdin.close()
            except BrokenPipeError:
                return self._describe_loss()
            return stdout.read().decode("utf-8", "replace") or self._describe_loss()

    def _describe_loss(self) -> str:
        """Says what is known of a supervisor that exited without a reply."""
        lines = processes.read(str(self.folder / records.LOG)).split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f"its supervisor failed: {last}" if last else "its supervisor was killed"

    def _reap(self) -> None:
        """Reaps the supervisor if it was started here and has exited, so that no zombie is left."""
        if self._supervisor and self._children.has_ended(self._supervisor):
            self._supervisor = 0

    def wait_for_supervisor(self) -> None:
        """Waits until the supervisor has exited, which it does a moment after its container.

        Gives up after _LATE seconds.
        """
        deadline = time.monotonic() + _LATE
        record = self.status_record()
        while record and self._is_supervised(record) and time.monotonic() < deadline:
            time.sleep(0.002)
            with self._lock:
                self._reap()

    def ask(self, fields: list[tuple[str, str]]) -> None:
        """Sends the supervisor a request.

        Raises ContainerRuntimeError if there is no supervisor.
        """
        with closing(SupervisorConnection(self.folder / records.SOCKET)) as connection:
            connection.ask(fields)

    def stop(self, grace: float) -> None:
        """Stops the container and waits until it has exited. `grace` is in seconds.

        Raises ContainerRuntimeError if it has not exited _LATE seconds after that.
        """
        deadline = time.monotonic() + grace + _LATE
        while self.state() is RuntimeContainerState.RUNNING:
            try:
                with closing(SupervisorConnection(self.folder / records.SOCKET)) as connection:
                    connection.ask([("op", "stop"), ("grace_ms", str(int(grace * 1000)))])
                    connection.exit_code(deadline - time.monotonic())
            except ContainerRuntimeError:
                time.sleep(0.01)  # it is exiting, or its supervisor has died
            if time.monotonic() > deadline:
                raise ContainerRuntimeError(f"container {self.id} has not ended in time")

    def state(self) -> RuntimeContainerState:
        """Returns the container's state.

        If its supervisor was killed, first kills what is left of the container.
        """
        record = self.status_record()
        if record is None:
            return RuntimeContainerState.CREATED
        return RuntimeContainerState.EXITED if record.exited else RuntimeContainerState.RUNNING

    def status_record(self) -> StatusRecord | None:
        """Returns the present status, or None before the start.

        If the supervisor was killed, kills what is left of the container and records its exit.
        """
        with self._lock:
            self._reap()
            record = self._status()
            if record is None or record.exited or self._is_supervised(record):
                return record
            record = self._status(fresh=True)  # it may have exited since it was read
            if record is None or record.exited:
                return record
            self._kill_left_over()
            self._write_exit(_LOST_CODE, LOST, started=record.started)
            return self._status(fresh=True)

    def _is_supervised(self, record: StatusRecord) -> bool:
        return processes.is_same(record.supervisor, record.supervisor_start, record.boot)

    def _status(self, fresh: bool = False) -> StatusRecord | None:
        try:
            at = os.stat(self.folder / records.STATUS).st_mtime_ns
        except OSError:
            return None
        if fresh or self._seen is None or self._seen[0] != at:
            record = records.read_status(self.folder)
            self._seen = (at, record) if record else None
        return self._seen[1] if self._seen else None

    def _kill_left_over(self) -> None:
        """Kills the processes that a dead supervisor has left.

        They are the processes in the container's control groups, orphans of the kubelet, and
        processes that have the container's id in their environment.
        """
        processes.forbid_forks(self.groups)
        deadline = time.monotonic() + _SWEEP
        while left_over := self._find_left_over():
            for pid in left_over:
                processes.kill(pid)
            if time.monotonic() > deadline:
                log.warning("processes of a lost container cannot be killed", container=self.id)
                return
            time.sleep(0.01)

    def _find_left_over(self) -> set[int]:
        own = (*processes.members(self.groups), *self._children.orphans())
        return {*own, *processes.with_variable(MARK, self.id)}

    def set_resources(self, resources: Resources) -> None:
        """Records other resources, which a later kubelet finds. Raises OSError."""
        with self._lock:
            config = replace(self.record.config, resources=resources)
            self.record = replace(self.record, config=config)
            records.write_container(self.folder, self.record)

    def record_exit(self, code: int, message: str) -> None:
        """Records the exit of a container whose supervisor could not record it."""
        with self._lock:
            self._write_exit(code, message, started=time.time_ns())

    def _write_exit(self, code: int, message: str, *, started: int) -> None:
        now = time.time_ns()
        records.write_exit(
            self.folder, started=started, finished=now, exit_code=code, error=message
        )

    def to_container(self) -> RuntimeContainer:
        """Returns the container as `Runtime.list_containers` shows it."""
        config = self.record.config
        return RuntimeContainer(
            id=self.id,
            sandbox_id=self.record.sandbox_id,
            name=config.name,
            attempt=config.attempt,
            image=config.image,
            state=self.state(),
            created_at=self.record.created_at,
            labels=config.labels,
            annotations=config.annotations,
        )

    def status(self) -> RuntimeContainerStatus:
        """Returns the container's full status."""
        record = self.status_record()
        status = RuntimeContainerStatus(
            id=self.id,
            config=self.record.config,
            state=RuntimeContainerState.CREATED,
            created_at=self.record.created_at,
            log_path=self.record.log_path,
        )
        if record is None:
            return status
        started = records.moment(record.started)
        if not record.exited:
            return replace(
                status, state=RuntimeContainerState.RUNNING, started_at=started, pid=record.pid
            )
        return replace(
            status,
            state=RuntimeContainerState.EXITED,
            started_at=started,
            finished_at=records.moment(record.finished),
            exit_code=record.exit_code,
            reason=_reason(record),
            message=record.error or self._message(record),
        )

    def _message(self, record: StatusRecord) -> str:
        config = self.record.config
        return termination.message(
            self.view.termination_place(),
            identity_of(config),
            Path(self.record.log_path),
            config.termination_message_policy,
            failed=record.exit_code != 0,
        )


def _reason(record: StatusRecord) -> str:
    if record.error and record.exit_code == 128:
        return "StartError"
    if record.oom_kills and record.exit_code:
        return "OOMKilled"
    return "Error" if record.exit_code else "Completed"
