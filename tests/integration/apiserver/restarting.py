"""An API server in a process of its own that is stopped or killed and comes back at its port."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from kcm.redisio.embedded import EmbeddedServer
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from kcm.testing.waiting import until
from tests.integration.apiserver.process import client_of, command, environment
from tests.ports import free_port


@dataclass
class RestartableServer:
    """The server of one folder and port, over the Redis of the tests."""

    redis: EmbeddedServer
    folder: Path
    port: int
    flags: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def settings(self) -> Settings:
        """Settings for reading and writing past the server."""
        prefix = environment(self.redis, self.folder)["KCM_PREFIX"]
        return Settings(redis_url=self.redis.url, state_dir=self.folder, prefix=prefix)

    def client(self) -> httpx.Client:
        """Returns a client of an administrator. The caller closes it."""
        return client_of(self.kubeconfig)

    def start(self) -> None:
        """Starts the server, and waits until it is ready."""
        env = environment(self.redis, self.folder)
        flags = command("--port", str(self.port), *self.flags)
        self.process = subprocess.Popen(flags, env=env, stdout=subprocess.DEVNULL)
        with self.client() as client:
            until(lambda: _is_ready(client), "the server")

    def stop(self, how: signal.Signals) -> None:
        """Ends the server by a signal, and waits for its end."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(20)


def _is_ready(client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return client.get("/readyz").status_code == 200
    return False


@contextmanager
def restartable(
    redis_server: EmbeddedServer, folder: Path, *flags: str
) -> Iterator[RestartableServer]:
    """Yields a running server."""
    server = RestartableServer(redis_server, folder, free_port(), flags)
    server.start()
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


@contextmanager
def store_io(server: RestartableServer) -> Iterator[PipelinedIO]:
    """Yields a connection to the server's store."""
    io = PipelinedIO(server.settings)
    io.attach()
    try:
        yield io
    finally:
        io.close()
