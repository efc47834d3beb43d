"""Servers of which one is the master and the others replicate it, for tests of promotions.

A client is led to a server by a link in the file system, as a name of DNS or a sentinel leads it.
Connections that are open stay where they are when the link changes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.testing.waiting import until
from tests.conftest import server_binary
from tests.ports import free_port

CONFIGURATION = """
save ""
bind 127.0.0.1
repl-diskless-sync yes
repl-diskless-sync-delay 0
repl-diskless-load on-empty-db
repl-ping-replica-period 1
"""


class Server:
    """One server process."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.port = free_port()
        self.socket = folder / f"{name}.sock"
        self._folder = folder / name
        self._folder.mkdir()
        self._process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis(unix_socket_path=str(self.socket))

    def start(self, more: str = "") -> None:
        """Starts it, with more lines of configuration."""
        file = self._folder / "redis.conf"
        own = f"port {self.port}\nunixsocket {self.socket}\ndir {self._folder}\n"
        file.write_text(CONFIGURATION + own + more)
        self._process = subprocess.Popen(
            [server_binary(), str(file), "--logfile", str(self._folder / "log")]
        )
        until(self._answers, f"{self.name} answers")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False

    def signal(self, number: int) -> None:
        """Sends the process a signal, such as SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        """Kills it."""
        self.client.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def replication(self) -> dict[str, Any]:
        return dict(self.client.info("replication"))

    def promote(self) -> None:
        """Makes it a master. The former one learns nothing of that."""
        self.client.replicaof("NO", "ONE")

    def replicate(self, master: Server) -> None:
        """Makes it a replica, which drops what the master does not have."""
        self.client.replicaof("127.0.0.1", str(master.port))

    def has_all_of(self, master: Server) -> bool:
        """Reports whether it replicates the master and has got everything."""
        mine = self.replication
        if mine["role"] != "slave" or mine["master_link_status"] != "up":
            return False
        theirs = master.replication
        replicas = [theirs[f"slave{number}"] for number in range(theirs["connected_slaves"])]
        # The master sends nothing to a replica that it has not heard of since its first copy.
        is_online = any(r["port"] == self.port and r["state"] == "online" for r in replicas)
        return is_online and bool(mine["slave_repl_offset"] >= theirs["master_repl_offset"])


class Replicas:
    """Three servers, and the link that leads clients to the master."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers: Sequence[Server] = [Server(folder, name) for name in "abc"]
        self.master = self.servers[0]
        self.link = folder / "master.sock"

    def begin(self) -> None:
        """Empties the servers. Those that replicate the master go on, as that takes least time; it
        is the first server then.
        """
        self.servers = sorted(self.servers, key=lambda server: server is not self.master)
        self.lead_to(self.master)
        self.follow()
        self.master.client.flushall()
        self.follow()

    def follow(self) -> None:
        """Makes all others replicate the master, and waits until they do."""
        others = [server for server in self.servers if server is not self.master]
        for server in others:
            if server.replication.get("master_port") != self.master.port:
                server.replicate(self.master)
        for server in others:
            until(lambda server=server: server.has_all_of(self.master), f"{server.name} follows")  # type: ignore[misc] # mypy infers no type for a default of a lambda

    def lead_to(self, server: Server, link: Path | None = None) -> None:
        """Makes the link lead to a server."""
        link = link or self.link
        link.unlink(missing_ok=True)
        link.symlink_to(server.socket)

    def fail_over(self, server: Server) -> None:
        """Promotes a server that has everything, leads clients there, and demotes the others."""
        self.master = server
        server.promote()
        self.lead_to(server)
        self.follow()

    def connect(self, link: Path | None = None) -> RedisIO:
        """Returns a client that is led by a link."""
        return RedisIO(Settings(redis_url=f"unix://{link or self.link}", state_dir=self.folder))


@contextmanager
def running_replicas(folder: Path) -> Iterator[Replicas]:
    """Gives the servers, of which the first is the master."""
    replicas = Replicas(folder)
    try:
        for server in replicas.servers:
            server.start()
        replicas.begin()
        yield replicas
    finally:
        for server in replicas.servers:
            server.stop()
