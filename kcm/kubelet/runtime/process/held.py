"""One container in the hands of the runtime: its folder, its supervisor, its end."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.cri import Container, ContainerState, ContainerStatus
from kcm.kubelet.runtime.process import processes, records, supervisor, termination
from kcm.kubelet.runtime.process.client import Connection
from kcm.kubelet.runtime.process.orphans import Children
from kcm.kubelet.runtime.process.records import ContainerRecord, StatusRecord
from kcm.kubelet.runtime.process.users import identity_of
from kcm.kubelet.runtime.process.view import MARK, View
from kcm.kubelet.runtime.process.wire import encode

log = structlog.get_logger("kcm.kubelet")

SUPERVISOR = Path(supervisor.__file__).with_name("__main__.py")

# Where the interpreter itself finds its libraries; nothing else is passed on.
_NEEDED = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}

LOST = "the container's supervisor was killed, and with it the container"
_LOST_CODE = 137  # as upstream's ContainerStatusUnknown
_SWEEP = 10.0  # seconds until what cannot be killed (it hangs in the kernel) is left
_LATE = 30.0  # seconds beyond the grace until stopping is given up


class HeldContainer:
    """Thread-safe. What it says is on disk, or comes from the supervisor."""

    def __init__(
        self,
        folder: Path,
        record: ContainerRecord,
        view: View,
        children: Children,
        groups: Sequence[Path] = (),
    ) -> None:
        """`groups` are its control groups, where it has any."""
        self.id = folder.name
        self.folder = folder
        self.record = record
        self.view = view
        self._children = children
        self._groups = [str(group) for group in groups]
        self._supervisor = 0  # its pid, while it is a child of this process
        self._seen: tuple[int, StatusRecord] | None = None  # by the file's time
        self._lock = threading.Lock()
        self._starting = False

    def start(self, launch: list[tuple[str, str]]) -> None:
        """Start it under a supervisor of its own. Raises ContainerRuntimeError."""
        with self._lock:
            if self._starting or self._status() is not None:
                raise ContainerRuntimeError(f"container {self.id} was started before")
            self._starting = True
        answer = self._supervise(launch)
        if answer != "ok":
            if self.status_record() is None:
                self.ended(128, answer or "its supervisor could not be started")
            raise ContainerRuntimeError(f"failed to start container {self.id}: {answer}")

    def _supervise(self, launch: list[tuple[str, str]]) -> str:
        """Start the supervisor, tell it the launch, return its answer."""
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
                return "its supervisor ended at once"
            return stdout.read().decode("utf-8", "replace")

    def _reap(self) -> None:
        """Take the exit code of a supervisor that was started here, so that it can go."""
        if self._supervisor and self._children.has_ended(self._supervisor):
            self._supervisor = 0

    def wait_for_supervisor(self) -> None:
        """Wait for the supervisor's own end, a moment after the container's."""
        until = time.monotonic() + _LATE
        found = self.status_record()
        while found and self._is_supervised(found) and time.monotonic() < until:
            time.sleep(0.002)
            with self._lock:
                self._reap()

    def ask(self, fields: list[tuple[str, str]]) -> None:
        """Ask the supervisor. Raises ContainerRuntimeError when there is none."""
        with Connection(self.folder / records.SOCKET) as connection:
            connection.ask(fields)

    def stop(self, grace: float) -> None:
        """End it, and wait for that. Raises ContainerRuntimeError if it does not end."""
        until = time.monotonic() + grace + _LATE
        while self.state() is ContainerState.RUNNING:
            try:
                with Connection(self.folder / records.SOCKET) as connection:
                    connection.ask([("op", "stop"), ("grace_ms", str(int(grace * 1000)))])
                    connection.exit_code(until - time.monotonic())
            except ContainerRuntimeError:
                time.sleep(0.01)  # it is ending, or its supervisor has died
            if time.monotonic() > until:
                raise ContainerRuntimeError(f"container {self.id} does not end")

    def state(self) -> ContainerState:
        """Where it is; a lost supervisor is noticed here, and its container cleared away."""
        found = self.status_record()
        if found is None:
            return ContainerState.CREATED
        return ContainerState.EXITED if found.exited else ContainerState.RUNNING

    def status_record(self) -> StatusRecord | None:
        """The status, which is true now; None before the start."""
        with self._lock:
            self._reap()
            found = self._status()
            if found is None or found.exited or self._is_supervised(found):
                return found
            found = self._status(fresh=True)  # it may have ended since it was read
            if found is None or found.exited:
                return found
            self._clear_away()
            self._end(_LOST_CODE, LOST, started=found.started)
            return self._status(fresh=True)

    def _is_supervised(self, found: StatusRecord) -> bool:
        return processes.is_same(found.supervisor, found.supervisor_start, found.boot)

    def _status(self, fresh: bool = False) -> StatusRecord | None:
        try:
            at = os.stat(self.folder / records.STATUS).st_mtime_ns
        except OSError:
            return None
        if fresh or self._seen is None or self._seen[0] != at:
            found = records.read_status(self.folder)
            self._seen = (at, found) if found else None
        return self._seen[1] if self._seen else None

    def _clear_away(self) -> None:
        """Kill what a dead supervisor has left: in its control groups, or orphaned to us, or
        with its mark."""
        processes.forbid_forks(self._groups)
        until = time.monotonic() + _SWEEP
        while left := self._left():
            for pid in left:
                processes.kill(pid)
            if time.monotonic() > until:
                log.warning("processes of a lost container do not end", container=self.id)
                return
            time.sleep(0.01)

    def _left(self) -> set[int]:
        known = (*processes.members(self._groups), *self._children.orphans())
        return {*known, *processes.with_variable(MARK, self.id)}

    def ended(self, code: int, words: str) -> None:
        """Record an end that no supervisor could."""
        with self._lock:
            self._end(code, words, started=time.time_ns())

    def _end(self, code: int, words: str, *, started: int) -> None:
        now = time.time_ns()
        records.write_end(self.folder, started=started, finished=now, exit_code=code, error=words)

    def listed(self) -> Container:
        """The line of the list."""
        config = self.record.config
        return Container(
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

    def status(self) -> ContainerStatus:
        """Everything about it."""
        found = self.status_record()
        status = ContainerStatus(
            id=self.id,
            sandbox_id=self.record.sandbox_id,
            config=self.record.config,
            state=ContainerState.CREATED,
            created_at=self.record.created_at,
            log_path=self.record.log_path,
        )
        if found is None:
            return status
        started = records.moment(found.started)
        if not found.exited:
            return replace(status, state=ContainerState.RUNNING, started_at=started, pid=found.pid)
        return replace(
            status,
            state=ContainerState.EXITED,
            started_at=started,
            finished_at=records.moment(found.finished),
            exit_code=found.exit_code,
            reason=_reason(found),
            message=found.error or self._message(found),
        )

    def _message(self, found: StatusRecord) -> str:
        config = self.record.config
        return termination.message(
            self.view.termination_place(),
            identity_of(config),
            Path(self.record.log_path),
            config.termination_message_policy,
            failed=found.exit_code != 0,
        )


def _reason(found: StatusRecord) -> str:
    if found.error and found.exit_code == 128:
        return "StartError"
    if found.oom_kills and found.exit_code:
        return "OOMKilled"
    return "Error" if found.exit_code else "Completed"
