"""The client's side of a connection with SPDY/3.1, to the streaming server of a container runtime.

Source: staging/src/k8s.io/apimachinery/pkg/util/httpstream/spdy (roundtripper.go, connection.go),
Kubernetes 1.36.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from kcm import errors
from kcm.kubelet.server import spdy

CHUNK = 32 * 1024  # bytes of one frame
_MOST_OF_HEAD = 64 * 1024  # bytes of the response to the upgrade
_CONNECTING = 30.0  # seconds


class SpdyClient:
    """A connection that a container runtime's streaming server has upgraded.

    `send` and `open` may be called by any thread, `receive` by one.
    """

    def __init__(self, url: str, version: str) -> None:
        """Connects. Raises ContainerRuntimeError."""
        self._session = spdy.SpdySession()
        self._lock = threading.Lock()
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise errors.ContainerRuntimeError(
                f"the runtime's streaming server is at {parts.scheme}://{parts.netloc}, and kcm "
                "reaches it by http:// only"
            )
        try:
            address = (parts.hostname, parts.port or 80)
            self._socket = socket.create_connection(address, _CONNECTING)
        except OSError as error:
            raise errors.ContainerRuntimeError(f"{parts.netloc}: {error}") from error
        try:
            path = f"{parts.path}?{parts.query}" if parts.query else parts.path
            self._rest = self._upgrade(path, parts.netloc, version)
            self._socket.settimeout(None)
        except (OSError, errors.ContainerRuntimeError) as error:
            self._socket.close()
            raise errors.ContainerRuntimeError(f"{parts.netloc}: {error}") from error

    def _upgrade(self, path: str, host: str, version: str) -> bytes:
        """Upgrades the connection; returns the bytes that came after the response's head."""
        self._socket.sendall(
            f"POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
            f"X-Stream-Protocol-Version: {version}\r\nContent-Length: 0\r\n\r\n".encode()
        )
        received = b""
        while b"\r\n\r\n" not in received and len(received) < _MOST_OF_HEAD:
            data = self._socket.recv(CHUNK)
            if not data:
                break
            received += data
        head, _, rest = received.partition(b"\r\n\r\n")
        words = head.split(b"\r\n")[0].split(b" ", 2)
        if len(words) < 2 or words[1] != b"101":
            said = (rest or head)[:500].decode("utf-8", "replace").strip()
            raise errors.ContainerRuntimeError(f"the upgrade to SPDY was refused: {said}")
        return rest

    def open(self, headers: Mapping[str, str]) -> int:
        """Opens a stream; returns its number. Raises OSError."""
        with self._lock:
            stream, frame = self._session.open(headers)
            self._socket.sendall(frame)
        return stream

    def send(self, stream: int, data: bytes, *, end: bool = False) -> None:
        """Sends data of a stream. Raises OSError."""
        with self._lock:
            self._socket.sendall(self._session.data(stream, data, end=end))

    def receive(self) -> Iterator[spdy.Event]:
        """Yields events until the other side has left."""
        data = self._rest
        with suppress(OSError, spdy.SpdyError):
            while True:
                for event in self._session.receive(data):
                    if isinstance(event, spdy.SpdyPing):
                        with self._lock:
                            self._socket.sendall(self._session.pong(event.number))
                    else:
                        yield event
                data = self._socket.recv(2 * CHUNK)
                if not data:
                    return

    def close(self) -> None:
        """Ends the connection, and with it `receive`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
