"""Starts an API server, and a server of constants as its baseline."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import yaml

from bench.api.client import Connection, Server
from bench.harness import Bench, wait_for
from bench.objects import pod_of_a_set
from kcm.api import codec

NAMESPACE = "/api/v1/namespaces/default/pods"


Process = subprocess.Popen[bytes]


def start_api_server(bench: Bench) -> Process:
    """Starts only an API server."""
    return bench.spawn("apiserver", ["-m", "kcm.apiserver", "--port", "0"])


class Servers:
    """The API server and the server of constants. The constructor waits until they are ready.

    `start` starts the API server, or a system that has one.
    """

    def __init__(self, bench: Bench, start: Callable[[Bench], Process] = start_api_server) -> None:
        self.bench = bench
        self._kubeconfig = bench.folder / "kubeconfig"
        self._kubeconfig.unlink(missing_ok=True)
        self._constants = bench.folder / "constants"
        self._constants.mkdir(exist_ok=True)
        self.process = start(bench)
        wait_for(self._kubeconfig.exists, "the start of the API server")
        self.api = self._server(self._written("clusters", "cluster", "server"))
        self._wait_until_ready()
        self.constant = self._start_constant()

    def _server(self, url: str) -> Server:
        host, _, port = url.partition("://")[2].rpartition(":")
        certificate = str(self.bench.folder / "apiserver.crt")
        return Server(host, int(port), certificate, self._written("users", "user", "token"))

    def _written(self, many: str, one: str, name: str) -> str:
        found: str = yaml.safe_load(self._kubeconfig.read_text())[many][0][one][name]
        return found

    def _wait_until_ready(self) -> None:
        connection = Connection(self.api)
        ready = self.api.request("GET", "/readyz")

        def answers() -> bool:
            try:
                return connection.ask(ready) == b"ok"
            except RuntimeError:
                return False

        wait_for(answers, "the API server's readiness")
        connection.close()

    def _start_constant(self) -> Server:
        log = self.bench.folder / "constant.log"
        log.unlink(missing_ok=True)
        folders = [str(self._constants), str(self.bench.folder)]
        self.constant_process = self.bench.spawn(
            "constant", ["-m", "bench.api.constant_app", *folders]
        )
        wait_for(lambda: log.exists() and log.read_text().endswith("\n"), "the constant's start")
        return self._server(log.read_text().split()[0])

    def constant_request(self, method: str, name: str, answer: bytes, body: bytes = b"") -> bytes:
        """Returns a request to which the server of constants responds with these bytes."""
        (self._constants / name).write_bytes(answer)
        return self.constant.request(method, f"/{name}", body)


def pod_body() -> bytes:
    """Returns the JSON of a pod as a client sends it, without a name."""
    pod = pod_of_a_set()
    return json.dumps(codec.to_dict(pod)).encode()
