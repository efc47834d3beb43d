"""An HTTP client that costs next to nothing: it sends prepared bytes and counts those it receives.

It speaks TLS, as kubectl does and as the API server wants by default.
"""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Server:
    """Where a server is, and the token it wants."""

    host: str
    port: int
    certificate: str  # the file of the one that it shows
    token: str = ""

    @property
    def trust(self) -> ssl.SSLContext:
        """The context that checks the server's certificate."""
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
        """Returns the body of the answer. Raises RuntimeError for a refusal."""
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
    raise RuntimeError(f"an answer without a length: {head!r}")
