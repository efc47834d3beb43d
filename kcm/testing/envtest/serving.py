"""The API server of the assets, in a fork of the template: how it becomes one, and how it ends."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from select import select
from typing import Any, Protocol

import setproctitle

from kcm import errors, logs
from kcm.apiserver.running import Host
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.testing.control_plane.api import ApiThread
from kcm.testing.envtest import options
from kcm.testing.envtest.etcd import ENVIRONMENT
from kcm.testing.envtest.kube_apiserver import BEGUN, LENGTH
from kcm.testing.envtest.options import EnvtestOptions
from kcm.testing.envtest.shared_store import SharedStore


class Servable(Protocol):
    """A server that can be started and stopped."""

    def start(self) -> None:
        """Returns once it serves. Raises ConfigurationError and StoreUnavailable."""

    def stop(self) -> None:
        """Stops everything."""


def serve(connection: socket.socket, living: int, folder: Path) -> int:
    """Serves until the program `kube-apiserver` or the template has ended; returns the exit code.

    `connection` leads to the program. `living` is a pipe that ends when the template ends.
    `folder` has the files of the store.
    """
    ends: list[Any] = [connection, living]
    try:
        values = _become(connection)
    except EOFError:
        return 0
    _tell(connection, BEGUN)
    if select(ends, [], [], 0)[0]:  # the program did not wait for its turn
        return 0
    store = SharedStore(folder)
    try:
        wanted = options.read(values, os.environ)
        plane = _build(wanted, store)
        try:
            plane.start()
            _leave_certificate(store.folder, wanted.cert_dir)
            select(ends, [], [])
        finally:
            plane.stop()
    except (errors.ConfigurationError, errors.Temporary) as error:
        sys.stderr.write(f"error: {error.message}\n")
        _tell(connection, b"\1")
        return 1
    finally:
        store.stop()
    _tell(connection, b"\0")
    return 0


def _leave_certificate(made: Path, folder: str) -> None:
    """Copies the certificate that the server has made for itself to --cert-dir, with its key."""
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name in options.PAIR:
            shutil.copy(made / name, folder)


def _tell(connection: socket.socket, word: bytes) -> None:
    with suppress(OSError):  # the program may be gone
        connection.sendall(word)


def _become(connection: socket.socket) -> Mapping[str, str]:
    """Takes the outputs, environment and folder of the program, and returns its flags.

    Raises EOFError if the program has ended before it had sent them.
    """
    head, outputs, _, _ = socket.recv_fds(connection, LENGTH, 2)
    length = int.from_bytes(head, "big")
    with connection.makefile("rb") as stream:
        message = stream.read(length)
    if not head or len(message) < length:
        raise EOFError
    asked = json.loads(message)
    for number, output in enumerate(outputs, start=1):
        os.dup2(output, number)
        os.close(output)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # It finds where the title is by the environment that the process was started with, and leaves
    # that as it is, so that the process can be told by it.
    os.environ["SPT_NOENV"] = "1"
    setproctitle.setproctitle("kcm: kube-apiserver")
    os.environ.clear()
    os.environ.update(asked["environment"] | ENVIRONMENT)
    os.chdir(asked["folder"])
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    values: Mapping[str, str] = asked["flags"]
    return values


def _build(wanted: EnvtestOptions, store: SharedStore) -> Servable:
    if wanted.is_bare:
        return BareServer(wanted, store)
    # Most suites never need controllers, which take a seventh of the time of all imports.
    from kcm.testing.envtest.controllers import build  # noqa: PLC0415

    return build(wanted, store)


class BareServer:
    """An API server without controllers and nodes."""

    def __init__(self, wanted: EnvtestOptions, store: SharedStore) -> None:
        self._wanted = wanted
        self._store = store
        self._stops = ExitStack()

    def start(self) -> None:
        """Returns once it serves. Raises ConfigurationError and StoreUnavailable."""
        logs.pass_to_standard_loggers()
        store, wanted = self._store, self._wanted
        store.launch()
        settings = Settings(redis_url=store.url, state_dir=store.folder, **wanted.settings)
        io = RedisIO(settings, name="kcm-envtest")
        io.attach()
        api = ApiThread(settings, Host(), wanted.api)
        self._stops.callback(api.stop, io.end_blocking_reads)
        api.start()
        api.wait_started()

    def stop(self) -> None:
        """Stops the server."""
        self._stops.close()
