"""The API server of a control plane, in a thread of the test's process."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from kcm import errors
from kcm.api.scheme import Scheme
from kcm.apiserver.app import ApiServer
from kcm.apiserver.filters.faults import ServerFaults
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.running import Host, ServerOptions, run
from kcm.apiserver.serving import Address, ApiHttpServer
from kcm.clock import Clock
from kcm.settings import Settings
from kcm.store.writes.observing import Observer

START_TIMEOUT = 30.0  # seconds
_STOP_TIMEOUT = 15.0  # seconds; the server gives requests 5 s
_LINGER = 0.02  # seconds for clients to notice that the server stops
_BETWEEN_LOOKS = 0.001  # seconds
_BETWEEN_ENDS = 0.01  # seconds


@dataclass(frozen=True)
class PlaneHost:
    """What the control plane passes to its API server."""

    clock: Clock
    rng: random.Random
    scheme: Scheme
    observer: Observer
    on_changes: Callable[[], None]  # called in a thread of the server when objects have changed
    stated_port: int


class ApiThread:
    """Runs the API server on a free port of the loopback interface, with TLS and RBAC."""

    def __init__(self, settings: Settings, plane: PlaneHost, faults: ServerFaults) -> None:
        self._settings = settings
        self._clock = plane.clock
        self._faults = faults
        self._host = Host(
            on_serve=self._on_serve,
            on_changes=plane.on_changes,
            clock=plane.clock,
            rng=plane.rng,
            scheme=plane.scheme,
            observer=plane.observer,
            linger=_LINGER,
            stated_port=plane.stated_port,
        )
        self._serving = threading.Event()
        self._server: ApiHttpServer | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="kcm-apiserver", daemon=True)
        self.url = ""  # known once the server has started

    def start(self) -> None:
        """Begins to start the server; `wait_started` says when it listens."""
        self._thread.start()

    def _run(self) -> None:
        options = ServerOptions(
            address=Address(port=0),
            anonymous=False,
            tls=True,
            token_file=None,
            kubeconfig=None,
            limits=Limits(),
            cluster_authority=True,
            local_storage_class=True,
            bootstrap_tokens=True,
            faults=self._faults,
        )
        try:
            run(self._settings, options, self._host)
        except BaseException as error:  # noqa: BLE001 - raised again by who waits for the start
            self._failure = error
        finally:
            self._serving.set()

    def _on_serve(self, server: ApiHttpServer, url: str) -> None:
        self._server, self.url = server, url
        self._serving.set()

    def wait_started(self) -> None:
        """Waits until the server listens, and its files are written. Raises what its start
        raised.
        """
        if not self._serving.wait(START_TIMEOUT):
            raise errors.StoreUnavailable(
                f"the API server did not start within {START_TIMEOUT:g} s"
            )
        if self._failure is not None:
            raise self._failure

    def wait_level(self, timeout: float) -> str:
        """Waits up to `timeout` seconds until the server has every write, and is idle.

        Returns what it still does then, "" for nothing. Raises StoreUnavailable.
        """
        assert self._server is not None
        assert isinstance(self._server.app, ApiServer)  # `start` made it
        app, deadline = self._server.app, self._clock.monotonic() + timeout
        never, version = threading.Event(), -1
        while version != (version := app.cacher.wait_until_level(timeout) or -1) or app.busy:
            if self._clock.monotonic() > deadline:
                return (
                    "still handles requests, CustomResourceDefinitions or APIServices"
                    if app.busy
                    else "has not read every write yet"
                )
            if app.busy:
                self._clock.wait(never, _BETWEEN_LOOKS)
        return ""

    def ask_to_stop(self) -> None:
        """Makes the server end, after the requests in progress."""
        if self._server is not None:
            self._server.ask_to_stop()

    def stop(self, end_blocking_reads: Callable[[], None]) -> None:
        """Stops the server, and waits until it has ended.

        `end_blocking_reads` makes the reads return with which its threads wait for changes.
        """
        self.ask_to_stop()
        deadline = self._clock.monotonic() + _STOP_TIMEOUT
        while self._thread.is_alive() and self._clock.monotonic() < deadline:
            with suppress(errors.Temporary):  # the server may be gone, and no read waits then
                end_blocking_reads()
            self._thread.join(_BETWEEN_ENDS)
