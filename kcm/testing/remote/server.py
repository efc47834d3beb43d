"""Serves the HTTP API on a port of the loopback interface, to those who have its token."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from kcm import errors
from kcm.loops import start_thread
from kcm.testing.control_plane.plane import ControlPlane
from kcm.testing.remote.routes import Routes

_MOST_BODY = 1 << 20  # bytes
_FAULTY = (ValueError, TypeError, KeyError)  # what methods raise for arguments of a wrong type


class RemoteControl:
    """The HTTP API of a control plane, from `with` to its end."""

    def __init__(self, plane: ControlPlane) -> None:
        self.token = secrets.token_urlsafe(24)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.routes = Routes(plane)  # type: ignore[attr-defined] # the handler's way to it
        self._server.token = self.token  # type: ignore[attr-defined] # as above
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """Where it is served."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread = start_thread("kcm-remote", partial(self._server.serve_forever, 0.05))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        if self._thread is not None:
            self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

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
        token = self.server.token  # type: ignore[attr-defined] # see RemoteControl
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            self._send(401, {"error": "give the token: Authorization: Bearer TOKEN"})
            return
        routes: Routes = self.server.routes  # type: ignore[attr-defined] # see RemoteControl
        try:
            self._send(200, routes.answer(self.command, urlsplit(self.path).path, values))
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
