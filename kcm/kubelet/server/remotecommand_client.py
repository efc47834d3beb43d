"""exec, attach and port-forward at the streaming server of a container runtime, by SPDY/3.1.

The runtime answers Exec, Attach and PortForward with a URL that is good for one connection. SPDY is
used although newer runtimes know WebSocket, too, because WebSocket's version 4 of the protocol,
the only one of containerd, cannot close a command's input.

Source: staging/src/k8s.io/client-go/tools/remotecommand (v2.go to v4.go) and tools/portforward,
Kubernetes 1.36.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import suppress
from typing import Any

from kcm import errors
from kcm.kubelet.cri import PortConnection, StreamOptions
from kcm.kubelet.server import spdy
from kcm.kubelet.server.spdyclient import CHUNK, SpdyClient
from kcm.loops import start_thread

EXEC, FORWARD = "v4.channel.k8s.io", "portforward.k8s.io"
_MOST_OF_STATUS = 64 * 1024  # bytes of a Status


class RemoteStream:
    """Implements cri.Stream: pairs of sockets, between which and the connection threads copy."""

    def __init__(self, url: str, wanted: StreamOptions) -> None:
        """Opens the streams. Raises ContainerRuntimeError."""
        self.stdin: int | None = None
        self.stdout: int | None = None
        self.stderr: int | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._exit_code: int | None = None
        self._fault = "the runtime has ended the stream without a status"
        self._connection = SpdyClient(url, EXEC)
        self._outputs: dict[int, socket.socket] = {}  # by stream
        self._resizing: int | None = None
        try:
            # The runtime expects its streams in this order.
            self._status = self._connection.open({"streamtype": "error"})
            inputs = self._open("stdin") if wanted.stdin else None
            for kind in ("stdout", "stderr"):
                if getattr(wanted, kind):
                    stream, self._outputs[stream] = self._open(kind)
            if wanted.tty:
                self._resizing = self._connection.open({"streamtype": "resize"})
        except OSError as error:
            self.close()
            for output in self._outputs.values():
                output.close()
            raise errors.ContainerRuntimeError(f"the runtime has left: {error}") from error
        if inputs is not None:
            start_thread("kcm-cri-stdin", lambda: _send(self._connection, *inputs, closes=True))
        start_thread("kcm-cri-stream", self._receive)

    def _open(self, kind: str) -> tuple[int, socket.socket]:
        """Opens a stream; returns its number, and the socket whose peer the caller has."""
        stream = self._connection.open({"streamtype": kind})
        ours, theirs = socket.socketpair()
        setattr(self, kind, ours.detach())
        return stream, theirs

    def _receive(self) -> None:
        """Copies output until the Status has come, or the runtime has left."""
        status = b""
        for event in self._connection.receive():
            if isinstance(event, spdy.Data) and event.stream in self._outputs:
                with suppress(OSError):  # nobody reads it any more
                    self._outputs[event.stream].sendall(event.data)
                if event.ended:
                    self._outputs.pop(event.stream).close()
            elif isinstance(event, spdy.Data) and event.stream == self._status:
                status = (status + event.data)[:_MOST_OF_STATUS]
                if event.ended:
                    break
            elif isinstance(event, spdy.StreamReset) and event.stream == self._status:
                break
        for output in self._outputs.values():
            output.close()
        self._read_status(status)
        self._over.set()

    def _read_status(self, text: bytes) -> None:
        """Takes the exit code, or why there is none, from the Status of the error stream."""
        if not text:
            return
        try:
            status: dict[str, Any] = json.loads(text)
            causes = (status.get("details") or {}).get("causes") or []
            codes = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
            if status.get("status") == "Success":
                self._exit_code = 0
            elif status.get("reason") == "NonZeroExitCode" and codes:
                self._exit_code = int(codes[0])
            else:
                self._fault = str(status.get("message"))
        except (ValueError, TypeError, KeyError, AttributeError):
            self._fault = text.decode("utf-8", "replace")

    def close_stdin(self) -> None:
        """Closes the input."""
        self._close("stdin")

    def resize(self, columns: int, rows: int) -> None:
        """Sets the terminal's size."""
        if self._resizing is not None:
            size = json.dumps({"Width": columns, "Height": rows}).encode()
            self._connection.send(self._resizing, size)

    def wait(self, timeout: float | None = None) -> int | None:
        """Returns the exit code; None if the command still runs after `timeout` seconds.

        Raises ContainerRuntimeError if it could not be run, or the runtime has left.
        """
        if not self._over.wait(timeout):
            return None
        if self._exit_code is None:
            raise errors.ContainerRuntimeError(self._fault)
        return self._exit_code

    def close(self) -> None:
        """Closes everything. The runtime decides what becomes of a command that still runs."""
        self._connection.close()
        for kind in ("stdin", "stdout", "stderr"):
            self._close(kind)

    def _close(self, kind: str) -> None:
        with self._lock:
            descriptor = getattr(self, kind)
            setattr(self, kind, None)
        if descriptor is not None:
            os.close(descriptor)


def _send(connection: SpdyClient, stream: int, source: socket.socket, *, closes: bool) -> None:
    """Sends what comes from a socket, and its end; closes the socket then if `closes` is set."""
    with suppress(OSError):  # the command has ended, or the runtime has left
        while data := source.recv(CHUNK):
            connection.send(stream, data)
        connection.send(stream, b"", end=True)
    if closes:
        source.close()


def open_port(url: str, port: int) -> PortConnection:
    """Connects to a port of a pod.

    That nothing listens there is known only at the end of the connection, and then a fault. Raises
    ContainerRuntimeError.
    """
    connection = SpdyClient(url, FORWARD)
    headers = {"port": str(port), "requestid": "0"}
    try:
        error = connection.open({"streamtype": "error", **headers})
        data = connection.open({"streamtype": "data", **headers})
        connection.send(error, b"", end=True)
    except OSError as failure:
        connection.close()
        raise errors.ContainerRuntimeError(f"the runtime has left: {failure}") from failure
    ours, theirs = socket.socketpair()
    fault = bytearray()

    def receive() -> None:
        ended: set[int] = set()
        for event in connection.receive():
            match event:
                case spdy.Data(stream, read, last) if stream == error:
                    fault.extend(read)
                    ended |= {stream} if last else set()
                case spdy.Data(stream, read, last):
                    with suppress(OSError):  # the client has left
                        theirs.sendall(read)
                    ended |= {stream} if last else set()
                case spdy.StreamReset(stream):
                    ended.add(stream)
            if {error, data} <= ended:
                break
        with suppress(OSError):
            theirs.shutdown(socket.SHUT_RDWR)
        connection.close()
        theirs.close()

    def find_fault() -> str:
        """Returns the fault without the words that the kubelet itself puts before it."""
        text = fault.decode("utf-8", "replace")
        return text.partition(": ")[2] if text.startswith("error forwarding port") else text

    start_thread("kcm-cri-forward", receive)
    start_thread("kcm-cri-forward", lambda: _send(connection, data, theirs, closes=False))
    return PortConnection(ours.detach(), find_fault)
