"""A small HTTP server in threads, which tests reach through the API server's proxy."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ADDRESS = "127.77.0.7"  # one that kubelets give to pods
PAGE = '<html><a href="/other">o</a><a href="https://example.com/">e</a></html>'
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Backend(ThreadingHTTPServer):
    """Answers what it was asked, and remembers it."""

    daemon_threads = True

    def __init__(self, address: str = ADDRESS) -> None:
        super().__init__((address, 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.left = threading.Event()  # set when a client has left an endless response


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Backend

    def handle_any(self) -> None:
        if self.headers.get("Upgrade") == "websocket" and "/ws" in self.path:
            self._echo()
            return
        body = self._body()
        seen = {
            "method": self.command, "path": self.path, "size": len(body),
            "digest": hashlib.sha256(body).hexdigest(),
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "pairs": self._pairs(),
        }  # fmt: skip
        self.server.asked.append(seen)
        match self.path.partition("?")[0]:
            case "/page":
                self._answer(PAGE.encode(), "text/html; charset=utf-8")
            case "/packed":
                self._answer(
                    gzip.compress(PAGE.encode()), "text/html", ("Content-Encoding", "gzip")
                )
            case "/moved":
                self._answer(b"", "text/plain", ("Location", "/other/"), code=302)
            case "/teapot":
                self._answer(b"short and stout", "text/plain", code=418)
            case "/cut":
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"half")
                self.close_connection = True
            case "/large":
                self._answer(bytes(8 * 1024 * 1024), "application/octet-stream")
            case "/endless":
                self._endless()
            case _:
                self._answer(json.dumps(seen).encode(), "application/json")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.handle_any
        raise AttributeError(name)

    def _answer(
        self, body: bytes, content_type: str, *fields: tuple[str, str], code: int = 200
    ) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Access-Control-Allow-Origin", "*")
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _pairs(self) -> list[tuple[str, str]]:
        return [(name.lower(), value) for name, value in self.headers.items()]

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _endless(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"1000\r\n" + bytes(4096) + b"\r\n")
        except OSError:
            self.server.left.set()
        self.close_connection = True

    def _echo(self) -> None:
        """Accepts the upgrade, and sends back upside down what comes."""
        key = self.headers["Sec-WebSocket-Key"] + _GUID
        accepted = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        seen = {"path": self.path, "headers": dict(self.headers.items()), "pairs": self._pairs()}
        self.server.asked.append(seen)
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accepted.encode() + b"\r\n\r\n"
        )
        while data := self.connection.recv(4096):
            self.connection.sendall(data[::-1])
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


@contextmanager
def backend(certificate: tuple[Path, Path] | None = None) -> Iterator[Backend]:
    """Yields a running server, over TLS with a certificate and its key."""
    server = Backend()
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()
