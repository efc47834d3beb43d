"""Answers AdmissionReviews and ConversionReviews as the path of the request says.

    python -m tests.webhooks.server CERTIFICATE KEY

It prints its port. A GET of `/reviews` returns what it was asked since the last one, and a GET of
`/release` ends the requests that it has not answered.
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.webhooks import conversion

Review = dict[str, Any]
_BIG = 10 * 1024 * 1024
_seen: list[Any] = []
_lock = threading.Lock()
_released = threading.Event()
_meeting = threading.Condition()
_waiting: list[Any] = []


def _answer(review: Review, **fields: Any) -> Review:
    response = {"uid": review["request"]["uid"], "allowed": True, **fields}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def _patch(*operations: Mapping[str, Any]) -> dict[str, str]:
    text = json.dumps(operations).encode()
    return {"patch": base64.b64encode(text).decode(), "patchType": "JSONPatch"}


def _label(review: Review, name: str) -> Review:
    """Adds a label, and what had come before to its value."""
    metadata = review["request"]["object"]["metadata"]
    before = metadata.get("labels")
    if before is None:
        return _answer(
            review, **_patch({"op": "add", "path": "/metadata/labels", "value": {name: "1"}})
        )
    count = str(int(before.get(name, "0")) + 1)
    return _answer(
        review, **_patch({"op": "add", "path": f"/metadata/labels/{name}", "value": count})
    )


def _label_once(review: Review, name: str) -> Review:
    labels = review["request"]["object"]["metadata"].get("labels") or {}
    return _answer(review) if name in labels else _label(review, name)


def _deny(review: Review, text: str) -> Review:
    return _answer(review, allowed=False, status={"message": text, "code": 403} if text else None)


def _sidecar(review: Review, name: str) -> Review:
    container = {"name": name, "image": "sidecar"}
    containers = review["request"]["object"]["spec"]["containers"]
    if any(one["name"] == name for one in containers):
        return _answer(review)
    return _answer(
        review, **_patch({"op": "add", "path": "/spec/containers/-", "value": container})
    )


_ANSWERS: Mapping[str, Callable[[Review, str], Review]] = {
    "allow": lambda review, _: _answer(review),
    "deny": _deny,
    "label": _label,
    "label-once": _label_once,
    "sidecar": _sidecar,
    "warn": lambda review, text: _answer(
        review, warnings=[text, "twice"], auditAnnotations={"seen": text}
    ),
    "patch": lambda review, text: _answer(review, **_patch(*json.loads(text))),
    "wrong-uid": lambda review, _: _answer(review, uid="other"),
    "wrong-kind": lambda review, _: _answer(review) | {"kind": "Pod"},
    "no-response": lambda review, _: {"apiVersion": review["apiVersion"], "kind": review["kind"]},
    "patch-without-type": lambda review, _: _answer(review, patch="W10="),
    "other-patch": lambda review, _: _answer(review, patch="W10=", patchType="Merge"),
    "bad-base64": lambda review, _: _answer(review, patch="!", patchType="JSONPatch"),
    "bad-patch": lambda review, _: _answer(
        review, **_patch({"op": "remove", "path": "/spec/nothing/here"})
    ),
    "bad-object": lambda review, _: _answer(
        review, **_patch({"op": "add", "path": "/data", "value": [1]})
    ),
    "rename": lambda review, name: _answer(
        review, **_patch({"op": "replace", "path": "/metadata/name", "value": name})
    ),
    "move": lambda review, name: _answer(
        review, **_patch({"op": "replace", "path": "/metadata/namespace", "value": name})
    ),
}


def _meet(count: int) -> None:
    """Returns when so many requests wait here at once."""
    with _meeting:
        _waiting.append(None)
        _meeting.notify_all()
        _meeting.wait_for(lambda: len(_waiting) >= count)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are written apart

    def do_GET(self) -> None:
        if self.path == "/release":
            _released.set()
            self._send(b"{}")
            return
        with _lock:
            reviews, _seen[:] = list(_seen), []
        self._send(json.dumps(reviews).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        parts = urlsplit(self.path)
        _, behaviour, *rest = parts.path.split("/")
        text = unquote("/".join(rest))
        with _lock:
            headers = {name.lower(): value for name, value in self.headers.items()}
            shown = {"path": parts.path, "query": parts.query, "headers": headers}
            _seen.append({**shown, "review": json.loads(body)})
        match behaviour:
            case "never":
                _released.wait()
                self.close_connection = True
            case "drip":
                self._drip()
            case "meet":
                _meet(int(text))
                self._send(json.dumps(_answer(json.loads(body))).encode())
            case "rubbish":
                self._send(b"<html>")
            case "big":
                self._send(b"[" + b" " * _BIG + b"]")
            case "status":
                self._send(b"no", int(text))
            case "redirect":
                again = text == "redirect"
                self._send(b"", 307, self.path if again else f"/{'/'.join(rest)}")
            case "close":
                self.close_connection = True
            case _:
                review = json.loads(body)
                if review["kind"] == "ConversionReview":
                    answer = conversion.answer(review, behaviour, text)
                else:
                    answer = _ANSWERS[behaviour](review, text)
                self._send(json.dumps(answer).encode())

    def _drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not _released.wait(0.1):
            self.wfile.write(b"x-more: 1\r\n")
            self.wfile.flush()

    def _send(self, body: bytes, code: int = 200, location: str = "/allow") -> None:
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if 300 <= code < 400:
            self.send_header("location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that go away


def main() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    if len(sys.argv) > 3:
        context.load_verify_locations(sys.argv[3])
        context.verify_mode = ssl.CERT_REQUIRED
    server = _Server(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
