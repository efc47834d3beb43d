"""An HTTP client that takes little CPU: it sends prepared bytes, and does not parse bodies.

It uses TLS, as kubectl does and as the API server demands by default.
"""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Server:
    """The address of a server, and the token that it demands."""

    host: str
    port: int
    certificate: str  # the path of its certificate
    token: str = ""

    @property
    def trust(self) -> ssl.SSLContext:
        """An SSL context that trusts the server's certificate."""
        return ssl.create_default_context(cafile=self.certificate)

    def request(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> bytes:
        """Returns the bytes of a request."""
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.token}",
            "Accept: application/json",
            f"Content-Type: {content_type}",
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


class Connection:
    """A connection that is kept open, for one request at a time."""

    def __init__(self, server: Server) -> None:
        plain = socket.create_connection((server.host, server.port), timeout=60)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = server.trust.wrap_socket(plain, server_hostname=server.host)

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> bytes:
        """Sends a request; returns the body of the response.

        Raises RuntimeError if its status code is not 20x, and if the connection is closed.
        """
        self._socket.sendall(request)
        found = b""
        while b"\r\n\r\n" not in found:
            found += self._received()
        head, _, body = found.partition(b"\r\n\r\n")
        parts, missing = [body], _length(head) - len(body)
        while missing > 0:
            parts.append(self._received())
            missing -= len(parts[-1])
        if not head.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(b"".join(parts).decode(errors="replace"))
        return b"".join(parts)

    def timed(self, request: bytes) -> float:
        """Returns the milliseconds from the first byte sent to the last byte received."""
        started = time.perf_counter()
        self.ask(request)
        return (time.perf_counter() - started) * 1e3

    def _received(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
    raise RuntimeError(f"a response without a length: {head!r}")
