"""Serves the HTTP API on a port of the loopback interface, to those who have its token."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from kcm import errors
from kcm.loops import start_thread
from kcm.testing.control_plane.plane import ControlPlane
from kcm.testing.remote.routes import Routes

_MOST_BODY = 1 << 20  # bytes
_POLL_INTERVAL = 0.05  # seconds between checks whether the server is to stop
_FAULTY = (ValueError, TypeError, KeyError)  # what methods raise for arguments of a wrong type


class Access(NamedTuple):
    """Where the HTTP API is, and the token that it demands."""

    url: str
    token: str


@contextmanager
def serve(plane: ControlPlane) -> Iterator[Access]:
    """Serves the HTTP API of a control plane until the `with` block ends."""
    with _Server(Routes(plane), secrets.token_urlsafe(24)) as server:
        thread = start_thread("kcm-remote", partial(server.serve_forever, _POLL_INTERVAL))
        try:
            yield Access(f"http://127.0.0.1:{server.server_address[1]}", server.token)
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, routes: Routes, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.routes = routes
        self.token = token


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """Answers a request that changes nothing."""
        self._answer(dict(parse_qsl(urlsplit(self.path).query)))

    def do_DELETE(self) -> None:
        """Answers a request that removes faults."""
        self.do_POST()

    def do_POST(self) -> None:
        """Answers a request that does something."""
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch(r"[0-9]{1,9}", length) or int(length) > _MOST_BODY:
            self.close_connection = True  # the body stays unread
            self._send(413, {"error": f"a body has at most {_MOST_BODY} bytes, and says how many"})
            return
        try:
            values = json.loads(self.rfile.read(int(length)) or b"{}")
        except ValueError as error:
            self._send(400, {"error": f"the body is no JSON: {error}"})
            return
        if not isinstance(values, dict):
            self._send(400, {"error": "the body is no object"})
            return
        self._answer(values)

    def _answer(self, values: dict[str, Any]) -> None:
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            self._send(401, {"error": "give the token: Authorization: Bearer TOKEN"})
            return
        path = urlsplit(self.path).path
        try:
            self._send(200, self.server.routes.answer(self.command, path, values))
        except errors.NotFound as error:
            self._send(404, {"error": str(error)})
        except AssertionError as error:  # an invariant, or what does not come to rest
            self._send(409, {"error": str(error)})
        except (errors.KcmError, *_FAULTY) as error:
            self._send(400, {"error": str(error)})

    def _send(self, code: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: the timeline has what matters."""
