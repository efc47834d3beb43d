"""A whole manager in this process, over a real store and real HTTP, and a server to be stopped."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from kcm.manager.context.context import build_context
from kcm.manager.run import ManagerRun
from kcm.options.manager import ManagerOptions
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from tests.conftest import server_binary
from tests.ports import free_port


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    """Gives a server of the test's own, which may be stopped."""
    folder = Path(tempfile.mkdtemp(prefix="kcm-"))
    server = EmbeddedServer(folder, binary=server_binary())
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


class Instance:
    """Runs a manager in a thread."""

    def __init__(self, settings: Settings, flags: dict[str, str]) -> None:
        self.port = free_port()
        options = ManagerOptions.load({"secure-port": str(self.port), **flags}, {})
        self.run = ManagerRun(build_context(settings, options, kind="manager"))
        self.code: int | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        self.code = self.run.run()

    def get(self, path: str, **headers: str) -> httpx.Response:
        transport = httpx.HTTPTransport(retries=5)
        with httpx.Client(transport=transport, base_url=f"http://127.0.0.1:{self.port}") as client:
            return client.get(path, headers=headers)

    def ready(self) -> bool:
        return self.get("/readyz").status_code == 200

    def wait_end(self, timeout: float) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def end(self) -> None:
        self.run.ask_to_stop()
        assert self.wait_end(5)


Begin = Callable[..., Instance]


@pytest.fixture
def begin(io: RedisIO, settings: Settings) -> Iterator[Begin]:
    """Gives a function that starts managers, and stops those that still run."""
    begun: list[Instance] = []

    def make(**flags: str) -> Instance:
        named = {name.replace("_", "-"): text for name, text in flags.items()}
        begun.append(Instance(settings, named))
        return begun[-1]

    yield make
    for instance in begun:
        instance.end()
