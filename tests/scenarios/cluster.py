"""A whole kcm, and a client of its API."""

from __future__ import annotations

import shutil
import signal
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import yaml

from kcm.testing.waiting import until
from tests.scenarios.system import Kcm, System

API = "/api/v1"
APPS = "/apis/apps/v1"


class Cluster:
    """Reads and writes the objects of a running kcm."""

    def __init__(self, system: Kcm) -> None:
        self.system = system
        self.kubeconfig = system.state_dir / "kubeconfig"
        config = yaml.safe_load(self.kubeconfig.read_text())
        self.client = httpx.Client(
            base_url=config["clusters"][0]["cluster"]["server"],
            headers={"authorization": f"Bearer {config['users'][0]['user']['token']}"},
            verify=ssl.create_default_context(
                cafile=str(self.kubeconfig.with_name("apiserver.crt"))
            ),
            timeout=30,
        )

    def get(self, path: str) -> Any:
        """Returns the JSON at a path, which must be there."""
        response = self.client.get(path)
        assert response.status_code == 200, f"{path}: {response.text}"
        return response.json()

    def names(self, path: str) -> list[str]:
        """Returns the names of the objects of a list."""
        return sorted(item["metadata"]["name"] for item in self.get(path)["items"])

    def answers(self) -> bool:
        """Returns whether the API server is there and ready."""
        with suppress(httpx.TransportError):
            return self.client.get("/readyz").status_code == 200
        return False

    def wait_until_empty(self, path: str) -> None:
        """Waits until a list is empty."""
        until(lambda: not self.names(path), f"the end of {path}")

    def has(self, path: str) -> bool:
        return self.client.get(path).status_code == 200

    def create(self, path: str, body: Any) -> httpx.Response:
        return self.client.post(path, json=body)

    def patch(self, path: str, body: Any) -> httpx.Response:
        headers = {"content-type": "application/merge-patch+json"}
        return self.client.patch(path, json=body, headers=headers)


@contextmanager
def running(*flags: str) -> Iterator[Cluster]:
    """Yields a kcm with three simulated nodes."""
    system = System(Path(tempfile.mkdtemp(prefix="kcm-api-")))
    try:
        system.start("--nodes", "3", "--flower-port=0", *flags)
        cluster = Cluster(system)
        yield cluster
        cluster.client.close()
    finally:
        if system.process is not None and not system.has_ended():
            system.stop(signal.SIGTERM)
        for process in system.list_left_processes():
            process.kill()
        shutil.rmtree(system.folder, ignore_errors=True)
