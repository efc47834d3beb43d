"""Handles the requests to a supervisor, and provides the descriptors that it has to poll."""

from __future__ import annotations

import os

from kcm.kubelet.runtime.process import processes
from kcm.kubelet.runtime.process.supervisor import launch
from kcm.kubelet.runtime.process.supervisor.container import SupervisedContainer
from kcm.kubelet.runtime.process.supervisor.control import ClientConnection
from kcm.kubelet.runtime.process.supervisor.streams import Reader
from kcm.kubelet.runtime.process.wire import Fields, get_number, get_text

TYPE_CHECKING = False  # importing typing would take a megabyte
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import TypeVar

    from kcm.kubelet.runtime.process.supervisor.streams import Output

    T = TypeVar("T")
    Actions = dict[int, Callable[[], object]]

_READ = 16 * 1024  # bytes of input at a time


class Requests:
    """The connections of clients to a supervisor."""

    def __init__(self, container: SupervisedContainer) -> None:
        self.listener: socket.socket | None = None
        self._container = container
        self._connections: list[ClientConnection] = []

    def readers(self) -> Actions:
        """Returns the functions to call when a descriptor is readable, by descriptor."""
        actions: Actions = {}
        if self.listener is not None:
            actions[self.listener.fileno()] = self._accept
        taken = self._container.input is None or not self._container.input.waiting
        for connection in self._connections:
            if connection.fd >= 0:
                actions[connection.fd] = _bound(self._serve, connection)
            if connection.stdin >= 0 and taken:
                actions[connection.stdin] = _bound(self._feed, connection)
        for output in self._container.outputs:
            if not output.unwritten and output.fd >= 0:
                actions[output.fd] = _bound(self._drain, output)
        return actions

    def writers(self) -> Actions:
        """Returns the functions to call when a descriptor is writable, by descriptor."""
        stdin = self._container.input
        actions: Actions = {stdin.fd: stdin.flush} if stdin and stdin.waiting else {}
        for output in self._container.outputs:
            actions.update({reader.fd: reader.flush for reader in output.readers if reader.behind})
        return actions

    def handle_exit(self, pid: int, code: int) -> None:
        """Handles the exit of an exec's main process or of an orphan."""
        for connection in self._connections:
            if connection.pid == pid:
                connection.pid = 0
                connection.reply(f"exit {code}")

    def finish(self, code: int) -> None:
        """Sends all clients the exit code of the container, and closes their connections."""
        for connection in self._connections:
            if connection.fd >= 0:
                connection.reply(f"exit {code}")
                connection.close()

    def _accept(self) -> None:
        assert self.listener is not None
        try:
            self._connections.append(ClientConnection(self.listener))
        except OSError:
            return  # the client has left already

    def _serve(self, connection: ClientConnection) -> None:
        there, requests = connection.receive()
        for request in requests:
            try:
                self._do(get_text(request, "op"), request, connection)
            except (launch.StartError, OSError, ValueError) as error:
                connection.reply(f"error {error}")
        if not there:
            self._close(connection)

    def _do(self, op: str, request: Fields, connection: ClientConnection) -> None:
        if op == "stop":
            self._container.stop(get_number(request, "grace_ms") / 1000)
        elif op == "resize":
            self._container.resize(get_number(request, "columns"), get_number(request, "rows"))
        elif op == "exec":
            self._exec(request, connection)
        elif op == "attach":
            self._attach(request, connection)
        connection.reply("ok")

    def _exec(self, request: Fields, connection: ClientConnection) -> None:
        record = {**self._container.record}
        record["env"] = [*record.get("env", []), *request.get("env", [])]
        tty = get_text(request, "tty") == "1"
        try:
            streams = connection.fds * 3 if tty else connection.fds
            connection.pid = launch.start(record, request["argv"], streams[:3], tty=tty)
        finally:
            connection.drop_fds()

    def _attach(self, request: Fields, connection: ClientConnection) -> None:
        fds, connection.fds = connection.fds, []
        for name, fd in zip(request.get("stream", []), fds, strict=True):
            if name == "stdin" and self._container.input is not None:
                os.set_blocking(fd, False)
                connection.stdin = fd
                continue
            output = [candidate for candidate in self._container.outputs if candidate.name == name]
            if output:
                reader = Reader(fd)
                connection.readers.append(reader)
                output[0].readers.append(reader)
            else:
                os.close(fd)

    def _feed(self, connection: ClientConnection) -> None:
        try:
            data = os.read(connection.stdin, _READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data and self._container.input is not None:
            self._container.input.give(data)
        else:
            self._close_input(connection)

    def _close_input(self, connection: ClientConnection) -> None:
        if connection.stdin >= 0:
            os.close(connection.stdin)
            connection.stdin = -1
            once = get_text(self._container.record, "stdin_once") == "1"
            if once and self._container.input is not None:
                self._container.input.close()
        if connection.fd < 0:
            self._connections.remove(connection)

    def _drain(self, output: Output) -> None:
        if not output.read() and not output.unwritten:
            output.finish()
            self._container.outputs.remove(output)

    def _close(self, connection: ClientConnection) -> None:
        """Closes the connection of a client that has left, and kills its exec.

        The input of an attach is still read to its end.
        """
        if connection.pid:
            try:
                os.killpg(connection.pid, processes.KILL)
            except OSError:
                connection.pid = 0
        connection.close()
        if connection.stdin < 0:
            self._connections.remove(connection)


def _bound(action: Callable[[T], object], argument: T) -> Callable[[], object]:
    return lambda: action(argument)
