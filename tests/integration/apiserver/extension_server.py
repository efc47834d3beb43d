"""A small server of another API, run as a process of its own: `fruits` of one group and version.

It serves TLS, and takes a request only from a front proxy whose client certificate its authority
has signed: as a library for such servers does, it then believes the headers. With a mode, it
misbehaves. It needs only the standard library, so that it starts fast.
"""

from __future__ import annotations

import argparse
import hashlib
import http.server
import json
import os
import ssl
import sys
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.integration.apiserver.extension_documents import (
    VERBS,
    openapi_v2,
    openapi_v3,
    resources,
)


class Shop:
    """The fruits, and the watchers that wait for more."""

    def __init__(self) -> None:
        self.fruits: dict[str, dict[str, Any]] = {}
        self.changed = threading.Condition()
        self.events: list[dict[str, Any]] = []

    def add(self, fruit: dict[str, Any], kind: str = "ADDED") -> dict[str, Any]:
        with self.changed:
            meta = fruit["metadata"]
            meta["resourceVersion"] = str(len(self.events) + 1)
            key = f"{meta.get('namespace')}/{meta['name']}"
            if kind == "DELETED":
                self.fruits.pop(key, None)
            else:
                self.fruits[key] = fruit
            self.events.append({"type": kind, "object": fruit})
            self.changed.notify_all()
        return fruit


class Handler(http.server.BaseHTTPRequestHandler):
    """Handles one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def setup(self) -> None:
        self.request.do_handshake()  # in the connection's thread, not in the listening one
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _answer(self, code: int, body: Any, kind: str = "application/json", **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _fail(self, code: int, reason: str, message: str) -> None:
        self._answer(
            code,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "code": code,
                "status": "Failure",
                "reason": reason,
                "message": message,
            },
        )

    def _peer(self) -> str:
        """Returns the name in the client's certificate, "" without one."""
        pairs = [
            pair for part in (self.request.getpeercert() or {}).get("subject", ()) for pair in part
        ]
        return str(dict(pairs).get("commonName", ""))

    def handle_request(self) -> None:
        options = self.server.options
        parts = urlsplit(self.path)
        if options.mode == "hang" and parts.path != options.healthy:
            time.sleep(300)
        if options.mode == "redirect" and parts.path != options.healthy:
            self._answer(302, {}, Location="https://example.com/")
            return
        if self._peer() != "front-proxy-client":
            self._fail(401, "Unauthorized", "who are you?")
            return
        if options.mode == "rubbish":
            self._answer(200, b"[" * 100_000 if "openapi" in parts.path else b'{"items": 7}')
            return
        if options.mode == "huge":
            self._stream_without_end()
            return
        user = self.headers.get("X-Remote-User")
        if not user:
            self._fail(401, "Unauthorized", "no X-Remote-User")
            return
        self._respond(parts.path, parse_qs(parts.query), user)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):  # one for each method
            return self.handle_request
        raise AttributeError(name)

    def _respond(self, path: str, query: dict[str, list[str]], user: str) -> None:
        group, version = self.server.options.group, self.server.options.version
        base = f"/apis/{group}/{version}"
        if path == "/apis":
            self._discover()
        elif path == base:
            self._answer(
                200,
                {
                    "kind": "APIResourceList",
                    "apiVersion": "v1",
                    "groupVersion": f"{group}/{version}",
                    "resources": resources(),
                },
            )
        elif path.startswith("/openapi/"):
            self._describe(path)
        elif path == f"{base}/whoami":
            lower = [(name.lower(), value) for name, value in self.headers.items()]
            self._answer(200, {"headers": lower, "path": self.path, "peer": self._peer()})
        elif path == f"{base}/echo":
            self._echo()
        elif path == f"{base}/connect":
            self._upgrade()
        elif path.startswith(base):
            self._serve_fruits(path.removeprefix(base), query, user)
        else:
            self._fail(404, "NotFound", "the server could not find the requested resource")

    # --- documents

    def _discover(self) -> None:
        if self.server.options.legacy or "APIGroupDiscoveryList" not in self.headers.get(
            "Accept", ""
        ):
            self._answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
            return
        options = self.server.options
        kind = {"group": options.group, "version": options.version, "kind": "Fruit"}
        entry = {
            "resource": "fruits",
            "responseKind": kind,
            "scope": "Namespaced",
            "singularResource": "fruit",
            "verbs": VERBS,
            "shortNames": ["fr"],
        }
        item = {
            "metadata": {"name": options.group},
            "versions": [{"version": options.version, "resources": [entry]}],
        }
        document = {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [item],
        }
        self._answer(
            200,
            document,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            ETag='"1"',
        )

    def _describe(self, path: str) -> None:
        options = self.server.options
        place = f"apis/{options.group}/{options.version}"
        if path == "/openapi/v2":
            self._answer(200, openapi_v2(options.group, options.version))
        elif options.legacy:
            self._fail(404, "NotFound", "no OpenAPI v3")
        elif path == "/openapi/v3":
            url = f"/openapi/v3/{place}?hash=ABC"
            self._answer(200, {"paths": {place: {"serverRelativeURL": url}}})
        elif path == f"/openapi/v3/{place}":
            self._answer(200, openapi_v3(options.group, options.version))
        else:
            self._fail(404, "NotFound", "no such document")

    # --- fruits

    def _serve_fruits(self, rest: str, query: dict[str, list[str]], user: str) -> None:
        words = rest.strip("/").split("/")
        namespace = words.pop(1) if words[0] == "namespaces" else ""
        if namespace:
            words.pop(0)
        name = words[1] if len(words) > 1 else ""
        shop = self.server.shop
        key = f"{namespace}/{name}"
        if self.command == "POST":
            body = json.loads(self._body())
            body["metadata"] |= {"namespace": namespace, "annotations": {"by": user}}
            self._answer(201, shop.add(body))
        elif name and key not in shop.fruits:
            self._fail(404, "NotFound", f'fruits "{name}" not found')
        elif self.command == "DELETE":
            self._answer(200, shop.add(shop.fruits[key], "DELETED"))
        elif self.command in {"PUT", "PATCH"}:
            body = json.loads(self._body())
            self._answer(200, shop.add(shop.fruits[key] | {"taste": body.get("taste")}, "MODIFIED"))
        elif name:
            self._answer(200, shop.fruits[key])
        elif query.get("watch", [""])[0] in {"1", "true"}:
            self._watch()
        else:
            items = [
                f
                for f in shop.fruits.values()
                if not namespace or f["metadata"]["namespace"] == namespace
            ]
            served = f"{self.server.options.group}/{self.server.options.version}"
            self._answer(
                200,
                {
                    "kind": "FruitList",
                    "apiVersion": served,
                    "metadata": {"resourceVersion": str(len(shop.events))},
                    "items": items,
                },
            )

    def _watch(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        shop, sent = self.server.shop, 0
        while True:
            with shop.changed:
                while len(shop.events) == sent:
                    shop.changed.wait(60)
                events, sent = shop.events[sent:], len(shop.events)
            for event in events:
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                self.wfile.flush()

    # --- bodies and upgrades

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _echo(self) -> None:
        body = self._body()
        self._answer(200, body, "application/octet-stream", X_Sum=hashlib.sha256(body).hexdigest())

    def _upgrade(self) -> None:
        if self.headers.get("Upgrade") != "echo":
            self._fail(400, "BadRequest", "Upgrade request required")
            return
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
        )
        self.wfile.flush()
        while line := self.rfile.readline():
            self.wfile.write(line.upper())
            self.wfile.flush()
        self.close_connection = True

    def _stream_without_end(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        piece = b'"' + b"x" * 65534 + b'"'
        while True:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))


class Server(http.server.ThreadingHTTPServer):
    """The server, with what its handlers share."""

    daemon_threads = True

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__((options.host, options.port), Handler)
        self.options = options
        self.shop = Shop()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        if options.client_ca:
            context.load_verify_locations(options.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # clients that leave


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--client-ca", default="")
    parser.add_argument("--group", default="fruits.example.com")
    parser.add_argument("--version", default="v1alpha1")
    parser.add_argument("--mode", default="", help="hang, redirect, rubbish or huge")
    parser.add_argument("--healthy", default="", help="path that is answered in spite of the mode")
    parser.add_argument("--legacy", action="store_true", help="no new forms of documents")
    parser.add_argument("--alone", action="store_true", help="go on without standard input")
    options = parser.parse_args()
    server = Server(options)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    if not options.alone:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    server.serve_forever()


def _end_with_parent() -> None:
    sys.stdin.read()  # ends when the test process does
    os._exit(0)


if __name__ == "__main__":
    main()
