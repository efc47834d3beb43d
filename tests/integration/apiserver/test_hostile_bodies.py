"""Hostile bodies cost a bounded amount of CPU and memory, and other users are served.

The server is a process of its own, whose CPU time and memory are measured.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
import pytest

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver import hostile
from tests.integration.apiserver.hostile import CASES, GROUP, Hostile
from tests.integration.apiserver.process import start

MEBIBYTE = 1024 * 1024
WATCHED = ("/livez", "/readyz", "/api/v1/namespaces/default")


@dataclass
class Server:
    """The server's process, and clients of an administrator and of eve."""

    process: psutil.Process
    admin: httpx.Client
    eve: httpx.Client

    def seconds(self) -> float:
        """Returns the CPU seconds that the server and its children have used."""
        times = [self.process.cpu_times()]
        times += [child.cpu_times() for child in self.process.children()]
        return sum(t.user + t.system + t.children_user + t.children_system for t in times)

    def loop_seconds(self) -> float:
        """Returns the CPU seconds of the thread of the event loop, which is the first one."""
        threads = {one.id: one.user_time + one.system_time for one in self.process.threads()}
        return threads[self.process.pid]

    def memory(self) -> int:
        """Returns the MiB that the server and its children use."""
        processes = [self.process, *self.process.children()]
        return int(sum(one.memory_info().rss for one in processes) / MEBIBYTE)


@dataclass
class Meanwhile:
    """The responses that an administrator got, and the most memory that the server used."""

    memory: int = 0
    codes: dict[str, set[int]] = field(default_factory=lambda: {path: set() for path in WATCHED})


@pytest.fixture(scope="module")
def server(redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("hostile")
    tokens = folder / "tokens.csv"
    tokens.write_text("eves-token,eve,eve\n")
    with start(redis_server, folder, "--token-auth-file", str(tokens)) as (process, admin):
        admin.timeout = 60
        until(lambda: admin.get("/readyz").status_code == 200, "the server")
        prepare(admin)
        transport: Any = admin._transport  # httpx has no public way to its TLS context
        verify = transport._pool._ssl_context  # the client's own, for another user
        with httpx.Client(
            base_url=admin.base_url,
            verify=verify,
            headers={"authorization": "Bearer eves-token"},
            timeout=120,
        ) as eve:
            new_server = Server(psutil.Process(process.pid), admin, eve)
            until(lambda: eve.get(hostile.TRAPS).status_code == 200, "the kind and the role")
            yield new_server


def prepare(admin: httpx.Client) -> None:
    """Creates eve's namespace, her permissions, the objects that she changes, and her kind."""
    everything = {
        "apiGroups": ["", GROUP, "apiextensions.k8s.io", "rbac.authorization.k8s.io"],
        "resources": ["configmaps", "pods", "traps", "customresourcedefinitions", "roles"],
        "verbs": ["get", "list", "create", "update", "patch", "delete"],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "eve"}
    reference = {
        "kind": "ClusterRole",
        "apiGroup": "rbac.authorization.k8s.io",
        "name": "hostile",
    }
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": "eve"}}),
        (f"{rbac}/clusterroles", {"metadata": {"name": "hostile"}, "rules": [everything]}),
        (
            f"{rbac}/clusterrolebindings",
            {"metadata": {"name": "hostile"}, "subjects": [subject], "roleRef": reference},
        ),
        (hostile.MAPS, {"metadata": {"name": "a"}, "data": {"a": "x"}}),
        (hostile.PODS, hostile.pod("large", hostile.ENTRIES)),
        (hostile.DEFINITIONS, hostile.traps()),
        *((hostile.MAPS, flooded) for flooded in hostile.FLOODED),
    ):
        answer = admin.post(path, json=body)
        assert answer.status_code == 201, answer.text


@contextmanager
def watch_server(server: Server) -> Iterator[Meanwhile]:
    """Sends the administrator's requests and measures the memory, until it is stopped."""
    meanwhile, ended = Meanwhile(), threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            meanwhile.memory = max(meanwhile.memory, server.memory())

    def ask() -> None:
        while True:
            last = ended.is_set()
            for path in WATCHED:
                meanwhile.codes[path].add(server.admin.get(path).status_code)
            if last:
                return

    with ThreadPoolExecutor(2) as threads:
        tasks = [threads.submit(look), threads.submit(ask)]
        try:
            yield meanwhile
        finally:
            ended.set()
        for task in tasks:
            task.result()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_body_is_refused_or_served_within_its_budget(
    server: Server, case: Hostile
) -> None:
    body, headers = case.body(), {"content-type": case.content_type}
    params = {"fieldManager": "eve"} if case.content_type == hostile.APPLY else {}
    before, memory = server.seconds(), server.memory()

    def send(_: int) -> httpx.Response:
        return server.eve.request(
            case.method, case.path, content=body, headers=headers, params=params
        )

    with watch_server(server) as meanwhile, ThreadPoolExecutor(case.at_once) as threads:
        answers = list(threads.map(send, range(case.at_once)))
    for answer in answers:
        assert answer.status_code in case.codes, answer.text[:500]
        assert len(answer.content) < 8 * MEBIBYTE
        if answer.is_error:
            assert answer.json()["kind"] == "Status"
    assert meanwhile.codes == {path: {200} for path in WATCHED}
    assert server.seconds() - before < case.seconds * case.at_once
    assert meanwhile.memory - memory < case.memory * (2 + case.at_once) / 3


@pytest.mark.parametrize("flood", hostile.FLOODS, ids=lambda flood: flood.name)
def test_work_that_a_request_asks_for_is_not_done_in_the_event_loop(
    server: Server, flood: Hostile
) -> None:
    body, headers = flood.body(), {"content-type": flood.content_type}
    whole, loop = server.seconds(), server.loop_seconds()

    def send(_: int) -> httpx.Response:
        return server.eve.request(flood.method, flood.path, content=body, headers=headers)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(send, range(4)))
    assert {answer.status_code for answer in answers} <= set(flood.codes)
    assert all(len(answer.content) < 8 * MEBIBYTE for answer in answers)
    assert server.loop_seconds() - loop < 0.4
    assert server.seconds() - whole < 12


def test_a_failed_test_of_a_patch_is_told_without_the_object(server: Server) -> None:
    patch = [{"op": "test", "path": "/data", "value": {}}]
    headers = {"content-type": hostile.JSON_PATCH}
    answer = server.eve.patch(f"{hostile.MAPS}/large", json=patch, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["message"].endswith("testing value /data failed: test failed")


def test_large_objects_are_written_and_refused_as_small_ones(server: Server) -> None:
    data = {f"k{n}": "v" for n in range(hostile.KEYS)}
    large = hostile.config_map(name="honest") | {"data": data}
    path = f"{hostile.MAPS}/honest"
    params = {"fieldManager": "eves-tool"}
    created = server.eve.post(hostile.MAPS, json=large, params=params | {"dryRun": "All"})
    assert created.status_code == 201
    assert server.eve.get(path).status_code == 404
    created = server.eve.post(hostile.MAPS, json=large, params=params)
    assert (created.status_code, created.json()["data"]) == (201, data)
    assert created.json()["metadata"]["managedFields"][0]["manager"] == "eves-tool"
    assert server.eve.post(hostile.MAPS, json=large).json()["reason"] == "AlreadyExists"
    changed = created.json() | {"data": data | {"k0": "w"}}
    assert server.eve.put(path, json=changed).json()["data"]["k0"] == "w"
    assert server.eve.put(path, json=changed).json()["reason"] == "Conflict"
    assert server.eve.get(path).json()["data"]["k0"] == "w"
    unknown = server.eve.put(path, json=large | {"x": 1})
    assert unknown.headers["warning"] == '299 - "unknown field \\"x\\""'
    gone = server.admin.post("/api/v1/namespaces/nowhere/configmaps", json=large)
    assert gone.status_code == 404


def test_bodies_that_come_slowly_keep_nobody_else_waiting(server: Server) -> None:
    """One user sends 230 of them, more than may be in flight."""
    port = server.eve.base_url.port
    head = (
        f"POST {hostile.MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n"
        "authorization: Bearer eves-token\r\n\r\n"
    )
    with ExitStack() as stack:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for _ in range(230):
            plain = stack.enter_context(socket.create_connection(("localhost", port), timeout=60))
            slow = stack.enter_context(context.wrap_socket(plain))
            slow.sendall(head.encode())
        body = {"metadata": {"generateName": "a-"}}
        until(lambda: server.eve.post(hostile.MAPS, json=body).status_code == 429, "their arrival")
        with watch_server(server) as meanwhile:
            assert server.admin.post(hostile.MAPS, json=body).status_code == 201
        assert meanwhile.codes == {path: {200} for path in WATCHED}
    until(lambda: server.eve.post(hostile.MAPS, json=body).status_code == 201, "their end")
