"""A reflector as client-go's, over HTTP: lists, watches, and starts again when it is cut."""

from __future__ import annotations

import json
import random
import threading
from contextlib import suppress
from typing import Any

import httpx

from kcm.testing.waiting import let_time_pass

Objects = dict[str, str]  # resourceVersions by name
_BUSY = {429, 500, 503, 504}  # answers after which client-go tries again
_FIRST = "0"  # the version of a copy whose initial objects are still to come


class Reflector(threading.Thread):
    """Keeps a copy of a collection. `style` says how it lists, `selector` what it sees.

    It has a fault when an event does not follow from its copy: an object that was there is added,
    one that was not is changed or deleted, or a version is not later than the one before.
    """

    def __init__(
        self, client: httpx.Client, path: str, style: str, selector: str, seed: int
    ) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._path = path
        self._style = style
        self._selector = {"labelSelector": selector} if selector else {}
        self._random = random.Random(seed)
        self._response: httpx.Response | None = None
        self._version = ""
        self.copy: Objects = {}
        self.stopping = False
        self.watches = 0
        self.bookmarks = 0
        self.expired = 0  # answers 410 to watches
        self.expired_pages = 0  # answers 410 to pages of lists
        self.faults: list[str] = []

    def run(self) -> None:
        while not self.stopping:
            try:
                if not self._version:
                    self._list()
                if self._version:
                    self._watch()
            except httpx.TransportError:
                let_time_pass(0.01, "the server may be starting")
            except Exception as error:  # noqa: BLE001 - told by the test
                self.faults.append(repr(error))
                return

    def cut(self) -> None:
        """Ends the present watch, in the middle of whatever it gets."""
        response = self._response
        if response is not None:
            with suppress(Exception):
                response.extensions["network_stream"].get_extra_info("socket").shutdown(2)

    def stop(self) -> None:
        self.stopping = True
        self.cut()
        self.join(10)
        self._client.close()

    def _list(self) -> None:
        if self._style == "stream":
            self._version = _FIRST
            self.copy = {}
            return
        limit = {"limit": "3"} if self._style == "pages" else {}
        copy: Objects = {}
        token = ""
        while True:
            params = {**self._selector, **limit, **({"continue": token} if token else {})}
            response = self._client.get(self._path, params=params)
            if response.status_code == 410:
                self.expired_pages += 1
                copy, token = {}, ""
                continue
            if response.status_code != 200:
                self._refused(response)
                return
            page = response.json()
            copy |= {one["metadata"]["name"]: _version(one) for one in page["items"]}
            token = page["metadata"].get("continue", "")
            if not token:
                break
        self.copy, self._version = copy, page["metadata"]["resourceVersion"]

    def _watch(self) -> None:
        params = {**self._selector, "watch": "true", "allowWatchBookmarks": "true"}
        if self._version == _FIRST:
            self.copy = {}
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        else:
            params["resourceVersion"] = self._version
        if not self._random.randrange(3):
            params["timeoutSeconds"] = "1"
        self.watches += 1
        with self._client.stream("GET", self._path, params=params) as response:
            self._response = response
            if response.status_code != 200:
                response.read()
                self._refused(response)
                return
            for line in response.iter_lines():
                if not self._take(json.loads(line)):
                    return

    def _refused(self, response: httpx.Response) -> None:
        if response.status_code not in _BUSY:
            self.faults.append(f"{response.status_code}: {response.text}")
            self.stopping = True
        let_time_pass(0.01, "the server is busy")

    def _take(self, event: dict[str, Any]) -> bool:
        """Applies an event. Returns whether the watch goes on."""
        obj = event["object"]
        if event["type"] == "ERROR":
            self._expire(obj)
            return False
        if event["type"] == "BOOKMARK":
            self._take_bookmark(obj)
            return True
        name, known = obj["metadata"]["name"], obj["metadata"]["name"] in self.copy
        late = self._version != _FIRST and int(_version(obj)) <= int(self._version)
        if late or known != (event["type"] != "ADDED"):
            self.faults.append(f"{event['type']} {name} {_version(obj)} at {self._version}")
        if event["type"] == "DELETED":
            self.copy.pop(name, None)
        else:
            self.copy[name] = _version(obj)
        if self._version != _FIRST:  # the initial objects come in no order of versions
            self._version = _version(obj)
        return True

    def _expire(self, status: dict[str, Any]) -> None:
        self.expired += 1
        if status["code"] != 410:
            self.faults.append(json.dumps(status))
        self._version = ""

    def _take_bookmark(self, obj: dict[str, Any]) -> None:
        ends_initial = "annotations" in obj["metadata"]
        if ends_initial != (self._version == _FIRST):
            self.faults.append(f"a bookmark at {self._version}: {json.dumps(obj)}")
        self._version = _version(obj)
        self.bookmarks += 1


def _version(obj: dict[str, Any]) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version
