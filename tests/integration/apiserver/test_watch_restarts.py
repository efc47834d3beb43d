"""Watches of real clients while the API server is stopped, killed and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import urllib3
from kubernetes import client, watch

from kcm.api.core_v1 import ConfigMap
from kcm.redisio.embedded import EmbeddedServer
from kcm.store import Store
from kcm.testing.builders import config_map
from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import VERSIONS, Kubectl, find
from tests.integration.apiserver.restarting import RestartableServer, restartable, store_io
from tests.integration.apiserver.rewriting import Writer, check_copies, reflecting
from tests.integration.official_client import open_official_client
from tests.new_objects import strip_store_fields

STEPS = 25  # between restarts
ENDS = (signal.SIGTERM, signal.SIGKILL)


@pytest.fixture(scope="module")
def server(
    redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestartableServer]:
    with restartable(redis_server, tmp_path_factory.mktemp("restarts")) as running:
        yield running


def test_copies_are_what_the_store_has_after_restarts(server: RestartableServer) -> None:
    fuzz_with_restarts(server, seed=0, steps=STEPS, ends=ENDS)


def fuzz_with_restarts(
    server: RestartableServer, seed: int, steps: int, ends: tuple[signal.Signals, ...]
) -> None:
    """Writes at random, ends the server in each of these ways, and writes while it is away."""
    with (
        server.client() as api,
        store_io(server) as io,
        reflecting(server.client, "default", seed) as reflectors,
    ):
        writer = Writer(api, io, "default", reflectors, seed)
        for end in ends:
            for _ in range(steps):
                writer.step()
            server.stop(end)
            writer.write_past_server()
            if seed % 2:
                writer.compact()
            server.start()
        for _ in range(steps):
            writer.step()
        check_copies(reflectors, writer)
        writer.clear()
        check_copies(reflectors, writer)
    for reflector in reflectors:
        assert reflector.watches > len(ends)
    assert sum(reflector.expired for reflector in reflectors) > 0


def test_a_watch_goes_on_from_before_the_server_was_killed(server: RestartableServer) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    with server.client() as api, store_io(server) as io:
        store = Store(io)
        store.create(strip_store_fields(config_map("there")))
        listed = api.get(path).json()["metadata"]["resourceVersion"]
        store.create(strip_store_fields(config_map("sent")))
        server.stop(signal.SIGKILL)
        store.create(strip_store_fields(config_map("away")))
        store.delete(ConfigMap.resource, "default/there")
    server.start()
    with server.client() as api:
        asked = {"watch": "1", "resourceVersion": listed, "timeoutSeconds": "1"}
        events = [json.loads(line) for line in api.get(path, params=asked).iter_lines()]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
            ("ADDED", "sent"),
            ("ADDED", "away"),
            ("DELETED", "there"),
        ]


@pytest.mark.parametrize("end", ENDS)
def test_kubectl_ends_its_watch_with_the_server(
    server: RestartableServer, tmp_path: Path, end: signal.Signals
) -> None:
    """kubectl get -w never watches again (UntilWithoutRetry in kubectl/pkg/cmd/get/get.go). It
    ends without an error, whichever way its connection ends.
    """
    version = VERSIONS[-1]
    binary = find(version)
    if binary is None:
        pytest.skip(f"kubectl.{version} is not here: see KCM_KUBECTL_DIR")
    kubectl = Kubectl(binary, server.kubeconfig, "default", tmp_path)
    name = f"watched-{end.name.lower()}"
    kubectl("create", "configmap", name)
    kubectl("label", "configmap", name, f"watched={name}")
    command = kubectl.command("get", "configmaps", "-w", "-o", "name", "-l", f"watched={name}")
    with subprocess.Popen(
        command, env=kubectl.environment(), stdout=subprocess.PIPE, text=True
    ) as watching:
        output = watching.stdout
        assert output is not None
        assert name in output.readline()
        kubectl("label", "configmap", name, "a=b")
        assert name in output.readline()
        server.stop(end)
        assert watching.wait(30) == 0
    server.start()
    assert name in kubectl("get", "configmaps", "-o", "name")


def test_a_client_library_watches_on(server: RestartableServer) -> None:
    """The official Python client's watch goes on at the last version that it has seen, or lists
    again when that version is from before the server's start.
    """
    came: list[str] = []
    stopped = threading.Event()

    def follow(core: client.CoreV1Api) -> None:
        stream = watch.Watch()
        while not stopped.is_set():
            with suppress(urllib3.exceptions.HTTPError, client.ApiException):
                for event in stream.stream(
                    core.list_namespaced_config_map, "default", timeout_seconds=2
                ):
                    came.append(event["object"].metadata.name)

    with (
        open_official_client(server.kubeconfig) as connection,
        store_io(server) as io,
    ):
        thread = threading.Thread(target=follow, args=(client.CoreV1Api(connection),), daemon=True)
        thread.start()
        store = Store(io)
        store.create(strip_store_fields(config_map("before")))
        until(lambda: "before" in came, "an event")
        server.stop(signal.SIGKILL)
        store.create(strip_store_fields(config_map("while-away")))
        server.start()
        until(lambda: "while-away" in came, "an event of the time without a server")
        stopped.set()
        thread.join(10)
