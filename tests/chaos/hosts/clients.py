"""Clients that keep every acknowledgement: writers and watchers, of API servers and the store."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx

from kcm import errors
from kcm.api.core_v1 import ConfigMap
from kcm.apimachinery.meta_v1 import ObjectMeta
from tests.chaos.failovers import Process
from tests.chaos.hosts.rig import API_PORT, Rig
from tests.integration.redisio.clients import Cache

CONFIGMAPS = ConfigMap.resource
NAMESPACE = "default"
PREFIX = "writer-"  # of the names of all that writers create
PACE = 0.3  # seconds between the creates of a writer
STAYING = 60  # ConfigMaps of a writer; the oldest beyond are deleted
PATIENCE = 20.0  # seconds of a request
_PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


@dataclass
class Record:
    """What was acknowledged and seen, by all clients together."""

    created: dict[str, int] = field(default_factory=dict)  # resourceVersions by name
    deleted: set[str] = field(default_factory=set)
    versions: dict[int, str] = field(default_factory=dict)  # whose each resourceVersion is
    acknowledged: int = 0
    times: list[float] = field(default_factory=list)  # of acknowledgements
    failures: Counter[str] = field(default_factory=Counter)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # what a watch must not say
    slowest: float = 0.0  # seconds of a request
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_version(self, name: str, version: int, who: str) -> None:
        """Notes that an object has a resourceVersion, which no other may have."""
        with self.lock:
            other = self.versions.setdefault(version, name)
            if other != name:
                self.doubled.append(f"{who}: {version} is that of {name} and of {other}")

    def note_create(self, name: str, version: int) -> None:
        self.note_version(name, version, "a writer")
        with self.lock:
            self.created[name] = version
            self.acknowledged += 1
            self.times.append(time.monotonic())

    def note_delete(self, name: str) -> None:
        with self.lock:
            self.deleted.add(name)
            self.acknowledged += 1

    def note_failure(self, what: str) -> None:
        with self.lock:
            self.failures[what] += 1

    def check(self, stored: Mapping[str, int]) -> list[str]:
        """Returns what was acknowledged and is not so, and forgets that. No writer may run."""
        lost = [f"{name} ({rv})" for name, rv in self.created.items() if stored.get(name) != rv]
        lost += [f"{name} is back" for name in self.deleted if name in stored]
        self.created = {name: rv for name, rv in self.created.items() if stored.get(name) == rv}
        self.deleted.clear()
        return lost

    def take_gap(self) -> float:
        """Returns the longest time without an acknowledgement since the last call."""
        times, self.times = sorted(self.times), []
        return max((b - a for a, b in pairwise(times)), default=0.0)


class Writer:
    """Creates and deletes ConfigMaps, and keeps what was acknowledged."""

    def __init__(self, number: int, record: Record) -> None:
        self.record = record
        self._number = number
        self._count = 0
        self._names: list[str] = []
        self.pause = threading.Event()
        self.resting = threading.Event()

    def create(self, name: str) -> int:
        """Creates a ConfigMap, and returns its resourceVersion. Raises: Temporary, Failed."""
        raise NotImplementedError

    def delete(self, name: str) -> None:
        """Deletes a ConfigMap. Raises: Temporary, Failed."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes its connections."""

    def run(self, over: threading.Event) -> None:
        while not over.wait(PACE):
            if self.pause.is_set():
                self.resting.set()
                continue
            self.resting.clear()
            name, self._count = f"{PREFIX}{self._number}-{self._count}", self._count + 1
            if self._try(lambda name=name: self.record.note_create(name, self.create(name))):  # type: ignore[misc] # mypy infers no type for a default of a lambda
                self._names.append(name)
            if len(self._names) > STAYING:
                self._remove(self._names.pop(0))

    def _remove(self, name: str) -> None:
        with self.record.lock:
            was_created = (
                self.record.created.pop(name, None) is not None
            )  # now it may be gone or not
        if was_created and self._try(lambda: self.delete(name)):
            self.record.note_delete(name)

    def _try(self, write: Callable[[], None]) -> bool:
        began = time.monotonic()
        try:
            write()
        except (errors.Temporary, Failed) as error:
            what = str(error) if isinstance(error, Failed) else type(error).__name__
            self.record.note_failure(what)
            return False
        finally:
            self.record.slowest = max(self.record.slowest, time.monotonic() - began)
        return True


class Failed(Exception):  # noqa: N818 - it is an outcome
    """A request was not acknowledged."""


class StoreWriter(Writer):
    """Writes as controllers do."""

    def __init__(self, number: int, record: Record, rig: Rig) -> None:
        super().__init__(number, record)
        self._process = Process(rig.settings, f"writer-{number}")

    def create(self, name: str) -> int:
        meta = ObjectMeta(name=name, namespace=NAMESPACE)
        created = self._process.store.create(ConfigMap(metadata=meta))
        return int(created.metadata.resource_version or 0)

    def delete(self, name: str) -> None:
        with suppress(errors.NotFound):
            self._process.store.delete(CONFIGMAPS, f"{NAMESPACE}/{name}")

    def close(self) -> None:
        self._process.close()


class Servers:
    """The API servers, of which a client asks the next one when one fails."""

    def __init__(self, rig: Rig, first: int) -> None:
        hosts = [p.host for p in rig.programs if p.kind == "apiserver"]
        self._urls = [f"https://{host.address}:{API_PORT}" for host in hosts]
        self._number = first
        self.client = rig.connect(PATIENCE)

    @property
    def url(self) -> str:
        return self._urls[self._number % len(self._urls)] + _PATH

    def ask(self, method: str, path: str = "", **more: Any) -> Any:
        """Sends a request, and returns the answer's JSON. Raises: Failed."""
        try:
            answer = self.client.request(method, self.url + path, **more)
        except httpx.HTTPError as error:
            self.fail()
            raise Failed(type(error).__name__) from error
        if not answer.is_success:
            if answer.is_server_error:
                self.fail()
            raise Failed(str(answer.status_code))
        return answer.json()

    def fail(self) -> None:
        """Lets the next request go to the next server."""
        self._number += 1


class ApiWriter(Writer):
    """Writes through the API servers."""

    def __init__(self, number: int, record: Record, rig: Rig) -> None:
        super().__init__(number, record)
        self._servers = Servers(rig, number)

    def create(self, name: str) -> int:
        answer = self._servers.ask("POST", json={"metadata": {"name": name}})
        return int(answer["metadata"]["resourceVersion"])

    def delete(self, name: str) -> None:
        try:
            self._servers.ask("DELETE", f"/{name}")
        except Failed as error:
            if str(error) != "404":
                raise

    def close(self) -> None:
        self._servers.client.close()


class StoreWatcher:
    """Keeps the ConfigMaps as a process of kcm does."""

    def __init__(self, rig: Rig) -> None:
        self._process = Process(rig.settings, "watcher")
        self._cache = Cache(self._process.store, CONFIGMAPS)

    @property
    def versions(self) -> dict[str, int]:
        return {n: rv for n, rv in self._cache.versions.items() if n.startswith(PREFIX)}

    def run(self, over: threading.Event) -> None:
        while not over.is_set():
            try:
                self._cache.read(0.2)
            except errors.Temporary:
                over.wait(0.1)

    def close(self) -> None:
        self._process.close()


class ApiWatcher:
    """Keeps the ConfigMaps of the namespace by a watch of an API server."""

    def __init__(self, number: int, record: Record, rig: Rig) -> None:
        self._record = record
        self._name = f"watcher-{number}"
        self._servers = Servers(rig, number)
        self.versions: dict[str, int] = {}
        self._version = ""  # up to which it has seen all; empty: it must list

    def run(self, over: threading.Event) -> None:
        while not over.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch(over)
            except (httpx.HTTPError, Failed, json.JSONDecodeError):
                self._servers.fail()
                over.wait(0.3)

    def _list(self) -> None:
        answer = self._servers.ask("GET")
        self.versions = {
            o["metadata"]["name"]: int(o["metadata"]["resourceVersion"])
            for o in answer["items"]
            if o["metadata"]["name"].startswith(PREFIX)
        }
        for name, version in self.versions.items():
            self._record.note_version(name, version, self._name)
        self._version = answer["metadata"]["resourceVersion"]

    def _watch(self, over: threading.Event) -> None:
        query = {"watch": "1", "resourceVersion": self._version, "timeoutSeconds": "60"}
        silence = httpx.Timeout(PATIENCE, read=3)  # writers write more often than that
        url = self._servers.url
        with self._servers.client.stream("GET", url, params=query, timeout=silence) as answer:
            if answer.status_code == httpx.codes.GONE:
                self._version = ""
            if not answer.is_success:
                raise Failed(str(answer.status_code))
            for line in answer.iter_lines():
                if over.is_set() or not self._see(json.loads(line)):
                    return

    def _see(self, event: Mapping[str, Any]) -> bool:
        """Takes an event. Returns whether the watch goes on."""
        if event["type"] == "ERROR":
            if event["object"]["code"] == httpx.codes.GONE:
                self._version = ""
            return False
        meta = event["object"]["metadata"]
        name, version = meta["name"], int(meta["resourceVersion"])
        if not name.startswith(PREFIX):
            return True
        if version <= int(self._version):
            self._record.wrong.append(f"{self._name}: {version} after {self._version}")
        if (event["type"] == "ADDED") == (name in self.versions):
            self._record.wrong.append(f"{self._name}: {event['type']} {name} at {version}")
        self._record.note_version(name, version, self._name)
        if event["type"] == "DELETED":
            self.versions.pop(name, None)
        else:
            self.versions[name] = version
        self._version = str(version)
        return True

    def close(self) -> None:
        self._servers.client.close()


class Clients:
    """Three writers and three watchers, each in a thread."""

    def __init__(self, rig: Rig) -> None:
        self.record = Record()
        self.writers: Sequence[Writer] = [
            ApiWriter(0, self.record, rig), ApiWriter(1, self.record, rig),
            StoreWriter(2, self.record, rig),
        ]  # fmt: skip
        self.watchers: Sequence[ApiWatcher | StoreWatcher] = [
            ApiWatcher(0, self.record, rig), ApiWatcher(1, self.record, rig), StoreWatcher(rig),
        ]  # fmt: skip
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=client.run, args=(self._over,))
            for client in (*self.writers, *self.watchers)
        ]
        for thread in self._threads:
            thread.start()

    def rest(self) -> None:
        """Lets the writers end what they do, and begin nothing."""
        for writer in self.writers:
            writer.resting.clear()
            writer.pause.set()
        for writer in self.writers:
            assert writer.resting.wait(3 * PATIENCE), "a request does not end"

    def go_on(self) -> None:
        """Lets the writers write."""
        for writer in self.writers:
            writer.pause.clear()

    def close(self) -> None:
        """Ends the threads."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        for client in (*self.writers, *self.watchers):
            client.close()
