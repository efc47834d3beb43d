"""The program `etcd` of the assets: it answers for kcm's store, and prepares the API servers.

A child imports kcm and starts the store while envtest is still busy with its certificates, so that
an API server is a fork of it (see `kcm.testing.envtest.template`). This process imports the
standard library only. It tells the program `kube-apiserver` where that child listens, and ends it.

envtest waits up to 20 s for each of its two programs. On a busy machine the imports take long, so
this one is healthy only after them then, and both waits count.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from select import select
from typing import NamedTuple

from kcm.testing.envtest.parent import LOOK_EVERY, Parent
from kcm.testing.envtest.signals import catch_signals

HELP = """etcd of kcm, for controller-runtime's envtest.

Flags, of which others are ignored:

  --data-dir string             Where objects are kept, for a server that is started again.
  --listen-client-urls string   The http:// URL to listen on.
  --advertise-client-urls string
  --listen-peer-urls string
  --unsafe-no-fsync             As always here: nothing waits for the disk.
"""
# Of the template and its forks. To find plugins, pydantic would read what all installed
# distributions say about themselves.
ENVIRONMENT = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}
FIND = "/kcm"  # the path by which `kube-apiserver` finds the socket
SOCKET = "template.sock"
_READ_TIMEOUT = 1.0  # seconds
_MOST_HEAD = 8192  # bytes of a request
_STOP_TIMEOUT = 10.0  # seconds
_BUSY = 2.0  # processes that run or wait, for each processor


class _Options(NamedTuple):
    data_dir: str
    host: str
    port: int


def read_options(arguments: Sequence[str]) -> _Options:
    """Returns what the flags say. Raises ValueError."""
    values = {"data-dir": "default.etcd", "listen-client-urls": "http://localhost:2379"}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.lstrip("-").partition("=")
        if name in values:
            values[name] = value if equals else next(rest, "")
    urls = values["listen-client-urls"]
    address = read_address(urls)
    if address is None:
        raise ValueError(f"--listen-client-urls={urls}: use http://127.0.0.1:PORT")
    return _Options(os.path.abspath(values["data-dir"]), *address)


def read_address(urls: str) -> tuple[str, int] | None:
    """Returns the host and the port of the first of some URLs, None if it is not http://HOST:PORT."""
    scheme, _, address = urls.partition(",")[0].partition("://")
    host, _, port = address.rstrip("/").rpartition(":")
    return (host.strip("[]"), int(port)) if scheme == "http" and port.isdigit() else None


class Handover(NamedTuple):
    """What the template gets from `etcd`."""

    folder: str  # for its own files; it removes it
    data: str  # the data folder
    control: socket.socket  # which it listens on
    alive: int  # a pipe that ends when `etcd` ends
    imported: int  # a pipe that it closes once everything is imported


def main(arguments: Sequence[str], template: Callable[[Handover], int]) -> int:
    """Serves until SIGTERM comes or the program that started it is gone, and returns the exit code.

    `template` runs in a child.
    """
    parent = Parent()
    try:
        options = read_options(arguments)
        listener = socket.create_server((options.host, options.port), backlog=64)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    wake, _written = catch_signals([signal.SIGTERM, signal.SIGINT, signal.SIGCHLD])
    folder = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"kcm-{os.urandom(6).hex()}")
    os.mkdir(folder, 0o700)  # which the child removes
    path = os.path.join(folder, SOCKET)
    control = socket.socket(socket.AF_UNIX)
    control.bind(path)
    control.listen(64)
    alive, ours = os.pipe()
    prepared, imported = os.pipe()
    child = os.fork()
    if child == 0:
        listener.close()
        os.close(ours)
        handover = Handover(folder, options.data_dir, control, alive, imported)
        os._exit(_run_child(lambda: template(handover)))
    control.close()
    os.close(alive)
    os.close(imported)
    try:
        return _Serving(listener, path, prepared).run(wake, parent, child)
    finally:
        os.close(ours)  # tells the child
        _wait_for(child)


def _run_child(run: Callable[[], int]) -> int:
    signal.set_wakeup_fd(-1)
    try:
        return run()
    except BaseException:  # noqa: BLE001 - nothing may return into the code of the parent
        import traceback  # noqa: PLC0415 - the parent never needs it

        traceback.print_exc()
        return 1


class _Serving:
    """Answers requests."""

    def __init__(self, listener: socket.socket, path: str, prepared: int) -> None:
        """`path` is the path of the template's socket, and the pipe `prepared` can be read once
        the template has imported everything.
        """
        self._listener = listener
        self._path = path
        self._prepared = prepared
        self._waits = os.getloadavg()[0] > _BUSY * (os.cpu_count() or 1)

    def run(self, wake: socket.socket, parent: Parent, child: int) -> int:
        """Serves until the process is to end, and returns its exit code."""
        while True:
            ready, _, _ = select([self._listener, wake], [], [], LOOK_EVERY)
            if parent.is_gone:
                return 0
            if wake in ready:
                numbers = set(wake.recv(64))
                if numbers & {signal.SIGTERM, signal.SIGINT}:
                    return 0
                if os.waitpid(child, os.WNOHANG)[0]:
                    sys.stderr.write("error: the store has ended\n")
                    return 1
            if self._listener in ready:
                with suppress(OSError), self._listener.accept()[0] as connection:
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(_READ_TIMEOUT)
        request = b""
        while b"\r\n\r\n" not in request and len(request) < _MOST_HEAD:
            part = connection.recv(_MOST_HEAD)
            if not part:
                return
            request += part
        status, body = "200 OK", '{"health":"true","reason":""}'
        if request.startswith(f"GET {FIND} ".encode()):
            body = self._path
        elif self._waits and not select([self._prepared], [], [], 0)[0]:
            status, body = "503 Service Unavailable", '{"health":"false","reason":"it starts"}'
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall((head + body).encode())


def _wait_for(child: int) -> None:
    """Waits until the child has ended, and kills it if it does not."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, _STOP_TIMEOUT)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
