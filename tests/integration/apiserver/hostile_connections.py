"""Connections that are closed before they were of any use, in rounds, and the memory they leave."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver.process import start

GARBAGE = b"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03" + b"a" * 9000  # no ClientHello
_WATCH = (
    b"GET /api/v1/namespaces/default/configmaps?watch=1 HTTP/1.1\r\nhost: localhost\r\n"
    b"authorization: Bearer eves-token\r\n\r\n"
)
_LARGE = 1_000_000  # bytes in each of two ConfigMaps


@dataclass
class Attacked:
    """An API server in a process of its own."""

    process: psutil.Process
    admin: httpx.Client

    @property
    def port(self) -> int:
        port = self.admin.base_url.port
        assert port is not None
        return port

    def memory(self) -> int:
        """Returns the process' resident memory in bytes."""
        return int(self.process.memory_info().rss)

    def count_connections(self) -> int:
        """Returns how many connections the server has open, besides that of the administrator."""
        assert self.admin.get("/livez").status_code == 200
        connections = self.process.net_connections("tcp")
        return sum(1 for one in connections if one.raddr and one.laddr.port == self.port) - 1

    def metric(self, name: str) -> float:
        """Returns the sum of a metric's samples."""
        lines = self.admin.get("/metrics").text.splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith((name + " ", name + "{"))
        )


@contextlib.contextmanager
def attacked(redis_server: EmbeddedServer, folder: Path, *flags: str) -> Iterator[Attacked]:
    """Starts a server where eve may watch two ConfigMaps of a megabyte each."""
    tokens = folder / "tokens.csv"
    tokens.write_text("eves-token,eve,eve\n")
    flags = ("--token-auth-file", str(tokens), *flags)
    with start(redis_server, folder, *flags) as (process, admin):
        admin.timeout = 60
        until(lambda: admin.get("/readyz").status_code == 200, "the server")
        for number in range(2):
            body = {"metadata": {"name": f"l{number}"}, "data": {"d": "x" * _LARGE}}
            path = "/api/v1/namespaces/default/configmaps"
            assert admin.post(path, json=body).status_code == 201
        group = "rbac.authorization.k8s.io"
        binding = {
            "metadata": {"name": "eve"},
            "subjects": [{"kind": "User", "apiGroup": group, "name": "eve"}],
            "roleRef": {"kind": "ClusterRole", "apiGroup": group, "name": "view"},
        }
        path = f"/apis/{group}/v1/clusterrolebindings"
        assert admin.post(path, json=binding).status_code == 201
        yield Attacked(psutil.Process(process.pid), admin)


def open_idle(server: Attacked) -> socket.socket:
    """Returns a TCP connection on which nothing is sent."""
    return socket.create_connection(("127.0.0.1", server.port), 60)


def break_handshake(server: Attacked) -> socket.socket:
    """Returns a connection on which garbage was sent instead of a TLS handshake."""
    connection = open_idle(server)
    with contextlib.suppress(ConnectionError):
        connection.sendall(GARBAGE)
    return connection


def watch_unread(server: Attacked) -> socket.socket:
    """Returns the connection of a watch of which nothing is read but the response's first bytes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the time to load authorities
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = context.wrap_socket(open_idle(server))
    connection.sendall(_WATCH)
    head = connection.recv(len(b"HTTP/1.1 200"))
    assert head == b"HTTP/1.1 200", head
    return connection


Opening = Callable[[Attacked], socket.socket]


def measure_rounds(server: Attacked, opening: Opening, count: int, rounds: int) -> float:
    """Opens `count` connections and closes them, `rounds` times.

    Returns how many bytes the server keeps of each, from the third round on: the first two fill
    what is used again.
    """
    sizes = []
    for _ in range(rounds):
        connections = [opening(server) for _ in range(count)]
        for one in connections:
            one.close()
        until(lambda: server.count_connections() == 0, "the end of the connections")
        sizes.append(server.memory())
    return (sizes[-1] - sizes[1]) / (count * (rounds - 2))
