"""The program `kube-apiserver` of the assets: it reads the flags, and stands for a fork of kcm.

The fork is made by the child of `etcd` that has kcm imported. It gets the flags, the environment
and the outputs of this process over a socket, and ends when this process does. This process imports
the standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from select import select

from kcm import KUBERNETES_VERSION
from kcm.testing.envtest import flags
from kcm.testing.envtest.etcd import FIND, read_address
from kcm.testing.envtest.parent import LOOK_EVERY, Parent
from kcm.testing.envtest.signals import catch_signals

_TIMEOUT = 5.0  # seconds for `etcd` to answer
LENGTH = 4  # bytes that say how long a message is
BEGUN = b"\xff"  # what a fork says first; its exit code follows


def main(arguments: Sequence[str]) -> int:
    """Serves until SIGTERM comes or the program that started it is gone; returns the exit code."""
    if {"--help", "-h"} & set(arguments):
        sys.stdout.write(flags.show_help())
        return 0
    if arguments and arguments[0].startswith("--version"):
        sys.stdout.write(f"Kubernetes v{KUBERNETES_VERSION}\n")
        return 0
    parent = Parent()
    try:
        values = flags.parse(arguments)
        connection = _connect(values.pop("etcd-servers", ""))
    except (flags.FlagError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    wake, _written = catch_signals([signal.SIGTERM, signal.SIGINT])
    try:
        _send(connection, values)
        return _wait(connection, wake, parent)
    except OSError:
        sys.stderr.write("error: `etcd` has ended\n")
        return 1


def _connect(servers: str) -> socket.socket:
    """Returns a connection to the child of `etcd` that forks. Raises FlagError."""
    refusal = f"--etcd-servers={servers} is not the `etcd` of kcm's assets"
    address = read_address(servers)
    if address is None:
        raise flags.FlagError(refusal)
    answer = b""
    with socket.create_connection(address, timeout=_TIMEOUT) as asked:
        asked.sendall(f"GET {FIND} HTTP/1.1\r\nHost: etcd\r\n\r\n".encode())
        while part := asked.recv(4096):
            answer += part
    _, _, body = answer.partition(b"\r\n\r\n")
    if not body.startswith(b"/"):
        raise flags.FlagError(refusal)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(body)
    return connection


def _send(connection: socket.socket, values: Mapping[str, str]) -> None:
    """Sends what the fork needs to be this process."""
    message = json.dumps(
        {"flags": values, "environment": dict(os.environ), "folder": os.getcwd()}
    ).encode()
    socket.send_fds(connection, [len(message).to_bytes(LENGTH, "big")], [1, 2])
    connection.sendall(message)


def _wait(connection: socket.socket, wake: socket.socket, parent: Parent) -> int:
    """Waits for the end of the fork, which it asks for on a signal. Returns the exit code.

    If there is no fork yet, since many start at once, nobody has to be waited for.
    """
    begun = False
    while True:
        ready, _, _ = select([connection, wake], [], [], LOOK_EVERY)
        if parent.is_gone:
            return 0
        if connection in ready:
            code = connection.recv(1)
            if code != BEGUN:
                return code[0] if code else 1
            begun = True
        if wake in ready:
            wake.recv(64)
            if not begun:
                return 0
            connection.shutdown(socket.SHUT_WR)
