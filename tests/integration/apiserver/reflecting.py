"""A reflector as client-go's, over HTTP: lists, watches, and starts again when it is cut."""

from __future__ import annotations

import json
import random
import threading
from contextlib import suppress
from typing import Any

import httpx

from tests.integration.apiserver.serving import TOKEN, Live

Objects = dict[str, str]  # resourceVersions by name


class Reflector(threading.Thread):
    """Keeps a copy of a collection. `style` says how it lists, `selector` what it sees."""

    def __init__(self, api: Live, path: str, style: str, selector: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._client = api.as_user(TOKEN)
        self._path = path
        self._style = style
        self._selector = {"labelSelector": selector} if selector else {}
        self._random = random.Random(seed)
        self._response: httpx.Response | None = None
        self._version = ""
        self.copy: Objects = {}
        self.stopping = False
        self.watches = 0
        self.faults: list[str] = []

    def run(self) -> None:
        while not self.stopping:
            try:
                if not self._version:
                    self._list()
                self._watch()
            except httpx.TransportError:
                continue  # cut: the watch goes on at the version that came last
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
            self._version = "0"
            self.copy = {}
            return
        limit = {"limit": "3"} if self._style == "pages" else {}
        copy: Objects = {}
        token = ""
        while True:
            params = {**self._selector, **limit, **({"continue": token} if token else {})}
            response = self._client.get(self._path, params=params)
            if response.status_code == 410:
                copy, token = {}, ""
                continue
            page = response.json()
            copy |= {one["metadata"]["name"]: _version(one) for one in page["items"]}
            token = page["metadata"].get("continue", "")
            if not token:
                break
        self.copy, self._version = copy, page["metadata"]["resourceVersion"]

    def _watch(self) -> None:
        params = {**self._selector, "watch": "true", "allowWatchBookmarks": "true"}
        if self._style == "stream" and self._version == "0":
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        else:
            params["resourceVersion"] = self._version
        if not self._random.randrange(3):
            params["timeoutSeconds"] = "1"
        self.watches += 1
        with self._client.stream("GET", self._path, params=params) as response:
            self._response = response
            if response.status_code != 200:
                self.faults.append(f"{response.status_code}: {response.read()!r}")
                self.stopping = True
                return
            for line in response.iter_lines():
                if not self._take(json.loads(line)):
                    return
        if self._version == "0":
            self._version = ""  # the initial objects were not complete

    def _take(self, event: dict[str, Any]) -> bool:
        """Applies an event. Returns whether the watch goes on."""
        obj = event["object"]
        match event["type"]:
            case "ERROR":
                if obj["code"] != 410:
                    self.faults.append(json.dumps(obj))
                self._version = ""
                return False
            case "BOOKMARK":
                self._version = _version(obj)
                return True
            case "DELETED":
                self.copy.pop(obj["metadata"]["name"], None)
            case _:
                self.copy[obj["metadata"]["name"]] = _version(obj)
        if self._version != "0":  # while the initial objects come, they are in no order of versions
            self._version = _version(obj)
        return True


def _version(obj: dict[str, Any]) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version
