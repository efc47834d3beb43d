"""Watches a collection as kubectl does: by a list, then a watch."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from types import TracebackType
from typing import Any

from bench.api.client import Connection, Server
from bench.harness import TooSlowError

Fields = dict[str, Any]


class Watch:
    """A thread that keeps the objects of a collection up to date. Use it as a context manager.

    `objects` are by name; `added` and `deleted` count the events since the list. A goal and
    `on_added` are called in the watch's thread.
    """

    def __init__(
        self, server: Server, path: str, on_added: Callable[[Fields], None] | None = None
    ) -> None:
        self._server = server
        self._path = path
        self._on_added = on_added
        self._lock = threading.Lock()
        self._goal: Callable[[Watch], bool] | None = None
        self._reached = threading.Event()
        self._reached_at = 0.0
        self._closing = False
        self._failure: Exception | None = None
        self.objects: dict[str, Fields] = {}
        self.added = 0
        self.deleted = 0

    def __enter__(self) -> Watch:
        connection = Connection(self._server)
        listed = json.loads(connection.ask(self._server.request("GET", self._path)))
        connection.close()
        self.objects = {item["metadata"]["name"]: item for item in listed["items"] or ()}
        self._connection = HTTPSConnection(
            self._server.host, self._server.port, context=self._server.trust
        )
        self._connection.request(
            "GET",
            f"{self._path}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}",
            headers={"Authorization": f"Bearer {self._server.token}", "Accept": "application/json"},
        )
        self._socket = self._connection.sock
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"the watch of {self._path} was rejected: {answer.read()!r}")
        self._thread = threading.Thread(target=self._run, args=(answer,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def wait(self, goal: Callable[[Watch], bool], what: str, timeout: float = 180.0) -> float:
        """Waits until `goal` holds; returns the monotonic time at which it did.

        Raises TooSlowError with `what` after `timeout` seconds, and RuntimeError if the watch
        fails.
        """
        with self._lock:
            self._reached.clear()
            self._goal = goal
            self._check_goal()
        reached = self._reached.wait(timeout)
        with self._lock:
            self._goal = None
        if self._failure is not None:
            raise RuntimeError(f"the watch of {self._path} failed") from self._failure
        if not reached:
            raise TooSlowError(f"{what} did not happen within {timeout:g} s")
        return self._reached_at

    def status_of(self, name: str) -> Fields:
        """Returns the status of an object, empty if there is none."""
        status: Fields = self.objects.get(name, {}).get("status", {})
        return status

    def _check_goal(self) -> None:
        if self._goal is not None and self._goal(self):
            self._reached_at = time.monotonic()
            self._goal = None
            self._reached.set()

    def _run(self, answer: HTTPResponse) -> None:
        try:
            self._follow(answer)
        except Exception as error:  # noqa: BLE001 - it is raised by `wait`
            self._fail(error)

    def _follow(self, answer: HTTPResponse) -> None:
        rest = b""
        while data := answer.read1(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            with self._lock:
                for line in lines:
                    self._take(json.loads(line))
                self._check_goal()
        self._fail(HTTPException("the server ended the watch"))

    def _take(self, event: Fields) -> None:
        fields = event["object"]
        if event["type"] == "DELETED":
            self.objects.pop(fields["metadata"]["name"], None)
            self.deleted += 1
            return
        if event["type"] not in ("ADDED", "MODIFIED"):
            raise HTTPException(f"an unexpected event: {event}")
        self.objects[fields["metadata"]["name"]] = fields
        if event["type"] == "ADDED":
            self.added += 1
            if self._on_added is not None:
                self._on_added(fields)

    def _fail(self, error: Exception) -> None:
        if not self._closing:
            self._failure = error
            self._reached.set()
