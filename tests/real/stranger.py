"""A proxy that makes kcm's API server a stranger: of another version, busy, late and forgetful.

- Each spec of an object has a field that no kind has, which a write must not take away.
- Kinds are missing from discovery, and others may not be listed.
- Every other watch of a kind, from the first on, is late by LAG seconds. The ones between end with
  410 at the first change after EXPIRES seconds.
- Some writes are answered with 429 and Retry-After, and in the middle of the work all connections
  are cut for a moment.
"""

from __future__ import annotations

import itertools
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from kcm.testing.waiting import let_time_pass

LAG = 0.5  # seconds
EXPIRES = 4.0  # seconds
BUSY_EVERY = 25  # writes
AWAY_AFTER = 120  # writes, of which half ask for accounts and tokens
MISSING = ("clustertrustbundles", "ipaddresses")
FORBIDDEN = "ingressclasses"
FIELD = "fieldOfTheStranger"
VALUE = {"kept": [1]}
_EXPIRED = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": ""}


class Stranger(ThreadingHTTPServer):
    """The proxy. `lost` has the writes that took the stranger's field away, and `faults` how often
    it was away, busy, late and forgetful.
    """

    daemon_threads = True

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client = client
        self.lost: list[str] = []
        self.faults: Counter[str] = Counter()
        self.away = False
        self.watches: Counter[str] = Counter()
        self.writes = itertools.count(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def restart(self) -> None:
        """Is away for a moment, as a server that restarts."""
        self.away = True
        let_time_pass(1.0, "clients have to notice that the server is away")
        self.away = False


class _Handler(BaseHTTPRequestHandler):
    server: Stranger
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""

    def handle_one_request(self) -> None:
        with suppress(OSError):  # the client has gone
            super().handle_one_request()
            return
        self.close_connection = True

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if self._refuse():
            return
        if parts.path.rpartition("/")[2] == FORBIDDEN:
            self._answer(403, _status("Forbidden", f"{FORBIDDEN} is forbidden"))
        elif "watch" in parse_qs(parts.query):
            self._watch(parts.path)
        else:
            self._pass_on(None)

    def do_POST(self) -> None:
        self._write()

    def do_PUT(self) -> None:
        self._write()

    def do_PATCH(self) -> None:
        self._write()

    def do_DELETE(self) -> None:
        self._write()

    def _write(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self._refuse():
            return
        number = next(self.server.writes)
        if number == AWAY_AFTER:
            self.server.restart()
        if number % BUSY_EVERY == 0:
            self.server.faults["busy"] += 1
            self._answer(429, _status("TooManyRequests", "try again"), {"retry-after": "1"})
            return
        if self.command == "PUT" and not urlsplit(self.path).path.endswith("/scale"):
            spec = json.loads(body).get("spec")
            if spec and spec.get(FIELD) != VALUE and "leases" not in self.path:
                self.server.lost.append(f"PUT {self.path}")
        self._pass_on(body)

    def _refuse(self) -> bool:
        """Cuts the connection while the server is away."""
        if self.server.away:
            self.server.faults["away"] += 1
            self.close_connection = True
        return self.server.away

    def _pass_on(self, body: bytes | None) -> None:
        client, headers = self.server.client, self._forwarded()
        answer = client.request(self.command, self.path, content=body, headers=headers)
        content = answer.content
        with suppress(ValueError):
            content = json.dumps(_change(json.loads(content))).encode()
        self._send_head(answer.status_code, answer.headers.get("content-type", ""), len(content))
        self.wfile.write(content)

    def _forwarded(self) -> dict[str, str]:
        names = ("accept", "authorization", "content-type", "user-agent")
        return {name: self.headers[name] for name in names if self.headers[name]}

    def _answer(self, code: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self._send_head(code, "application/json", len(content), headers)
        self.wfile.write(content)

    def _send_head(
        self, code: int, kind: str, length: int | None, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(code)
        for name, value in {"content-type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def _watch(self, path: str) -> None:
        self.server.watches[path] += 1
        number = self.server.watches[path]
        lag = LAG if number % 2 else 0.0
        client, began, sent = self.server.client, time.monotonic(), 0.0
        with (
            suppress(OSError, httpx.TransportError),
            client.stream("GET", self.path, headers=self._forwarded(), timeout=60) as answer,
        ):
            self._send_head(answer.status_code, "application/json", None)
            for line in answer.iter_lines():
                if lag and time.monotonic() - sent > lag:
                    self.server.faults["late"] += 1
                    let_time_pass(lag, "this watch is late")
                if self.server.away:
                    break
                event = json.loads(line)
                self._send_line({**event, "object": _change(event["object"])})
                sent = time.monotonic()
                if number % 2 == 0 and time.monotonic() - began > EXPIRES:
                    self.server.faults["forgetful"] += 1
                    self._send_line({"type": "ERROR", "object": _EXPIRED})
                    break
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _send_line(self, event: Any) -> None:
        text = json.dumps(event).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()


def _status(reason: str, message: str) -> dict[str, str]:
    return {"kind": "Status", "status": "Failure", "reason": reason, "message": message}


def _change(body: Any) -> Any:
    """Returns an answer as the stranger gives it."""
    if body.get("kind") == "APIGroupDiscoveryList":
        for group in body["items"]:
            for version in group["versions"]:
                kinds = version["resources"]
                version["resources"] = [k for k in kinds if k["resource"] not in MISSING]
    elif "items" in body:
        body["items"] = [_with_field(item) for item in body["items"] or ()]
    elif body.get("kind") != "Scale":
        _with_field(body)
    return body


def _with_field(value: Any) -> Any:
    """Adds the field to each spec at any depth, except in the data of ControllerRevisions."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "data":
                continue
            _with_field(inner)
            if name == "spec" and isinstance(inner, dict):
                inner[FIELD] = VALUE
    elif isinstance(value, list):
        for inner in value:
            _with_field(inner)
    return value


@contextmanager
def stand_between(url: str, token: str, certificate: Path) -> Iterator[Stranger]:
    """Yields a running proxy to a server, as the user of the token."""
    context = ssl.create_default_context(cafile=str(certificate))
    headers, limits = {"authorization": f"Bearer {token}"}, httpx.Limits(max_connections=None)
    with (
        httpx.Client(
            base_url=url, headers=headers, verify=context, limits=limits, timeout=60
        ) as way,
        Stranger(way) as stranger,
    ):
        thread = threading.Thread(target=stranger.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield stranger
        finally:
            stranger.away = True
            stranger.shutdown()
            thread.join()
