"""The main loop of a supervisor: starts the container, supervises it and kills what it leaves.

Guarantees: the status file is replaced atomically and says "exited" only when all of the
container's processes are gone and its output is in the log. Nothing here waits for the kubelet.
"""

from __future__ import annotations

import os
import select
import signal
import time

from kcm.kubelet.runtime.process import processes
from kcm.kubelet.runtime.process.supervisor import control, launch, system
from kcm.kubelet.runtime.process.supervisor.container import SupervisedContainer
from kcm.kubelet.runtime.process.supervisor.requests import Requests
from kcm.kubelet.runtime.process.wire import Fields, decode, encode

SOCKET = "socket"  # in the container's folder, as the status file is
STATUS = "status"

_RETRY = 1.0  # seconds until writing to a full disk is tried again
_SWEEP = 10.0  # seconds after which processes that cannot be killed are left behind
_FORWARDED = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2
)  # fmt: skip


def main(folder: str) -> None:
    """Reads the launch record, starts the container and supervises it until it has exited."""
    os.chdir(folder)
    record = b""
    while chunk := os.read(0, 65536):
        record += chunk
    supervisor = Supervisor(decode(record))
    try:
        supervisor.start()
        reply = "ok"
    except (launch.StartError, OSError) as error:
        supervisor.record_failure(str(error))
        reply = str(error)
    _reply_to_kubelet(reply)
    if reply == "ok":
        supervisor.run()


def _reply_to_kubelet(reply: str) -> None:
    """Replies to the kubelet, if it still lives, and closes the pipes to it."""
    try:
        os.write(1, reply.encode("utf-8", "replace"))
    except OSError:
        reply = ""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


class Supervisor:
    """Supervises one container from its start to its exit."""

    def __init__(self, record: Fields) -> None:
        self._container = SupervisedContainer(record)
        self._requests = Requests(self._container)
        self._wake, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*_FORWARDED, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._started = 0

    def start(self) -> None:
        """Starts the main process. Raises StartError and OSError."""
        system.become_subreaper()
        self._requests.listener = control.listen(SOCKET)
        self._container.start()
        self._started = time.time_ns()
        self._write([("state", "running")])

    def record_failure(self, words: str) -> None:
        """Records that the container could not be started."""
        self._started = time.time_ns()
        self._write_exit([("exit_code", "128"), ("error", words)])

    def run(self) -> None:
        """Serves requests until the main process has exited, then kills what is left.

        Records the exit at the end.
        """
        while self._container.exit_code is None:
            self._turn()
        self._sweep()
        self._container.finish()
        code = self._container.exit_code
        oom = self._container.oom_kills()
        self._write_exit([("exit_code", str(code)), ("oom_kills", str(oom))])
        self._requests.finish(code)

    def _turn(self) -> None:
        """Waits until a descriptor is ready or something is due, and handles that."""
        readers = {self._wake: self._handle_signal, **self._requests.readers()}
        writers = self._requests.writers()
        poll = select.poll()
        for fd in readers.keys() | writers.keys():
            wanted = select.POLLIN if fd in readers else 0
            poll.register(fd, wanted | (select.POLLOUT if fd in writers else 0))
        for fd, event in poll.poll(self._next_timeout()):
            if fd in writers and event & ~select.POLLIN:
                writers[fd]()
            if fd in readers and event & ~select.POLLOUT:
                readers[fd]()
        self._container.kill_if_due()
        for output in self._container.outputs:
            if output.unwritten:
                output.retry()

    def _next_timeout(self) -> int | None:
        """Returns the milliseconds until something is due by itself, None if nothing is."""
        due = self._container.kill_at
        waits = [] if due is None else [max(due - time.monotonic(), 0.0)]
        if any(output.unwritten for output in self._container.outputs):
            waits.append(_RETRY)
        return int(min(waits) * 1000) + 1 if waits else None

    def _handle_signal(self) -> None:
        for number in os.read(self._wake, 256):
            if number == signal.SIGCHLD:
                self._reap()
            else:
                processes.kill(self._container.pid, number)

    def _reap(self) -> bool:
        """Reaps the children that have exited. Returns False if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code
            if pid == self._container.pid:
                self._container.exit_code = code
            else:
                self._requests.handle_exit(pid, code)

    def _sweep(self) -> None:
        """Kills all processes that are left, as the end of a pid namespace would.

        Orphans are children of the supervisor. Gives up after _SWEEP seconds.
        """
        until, pause = time.monotonic() + _SWEEP, 0.002
        self._container.forbid_forks()
        while self._reap() and time.monotonic() < until:
            self._container.kill_all()
            time.sleep(pause)
            pause = min(pause * 2, 0.1)

    def _write_exit(self, fields: list[tuple[str, str]]) -> None:
        self._write([("state", "exited"), ("finished", str(time.time_ns())), *fields])
        if os.path.exists(SOCKET):
            os.unlink(SOCKET)

    def _write(self, fields: list[tuple[str, str]]) -> None:
        own, child = os.getpid(), self._container.pid
        fields += [
            ("supervisor", str(own)),
            ("supervisor_start", str(processes.start_of(own))),
            ("pid", str(child)),
            ("started", str(self._started)),
            ("boot", processes.boot_id()),
        ]
        with open(f"{STATUS}.new", "wb") as file:
            file.write(encode(fields))
        os.replace(f"{STATUS}.new", STATUS)
