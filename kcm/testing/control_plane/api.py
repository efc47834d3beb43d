"""The API server of a control plane, in a thread of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from kcm import errors
from kcm.apiserver.app import ApiServer
from kcm.apiserver.running import Host, ServerOptions, run
from kcm.apiserver.serving import ApiHttpServer
from kcm.settings import Settings

START_TIMEOUT = 30.0  # seconds
_STOP_TIMEOUT = 15.0  # seconds; the server gives requests 5 s
_LINGER = 0.02  # seconds for clients to notice that the server stops
_BETWEEN_LOOKS = 0.001  # seconds
_BETWEEN_ENDS = 0.01  # seconds


class ApiThread:
    """Runs the API server."""

    def __init__(self, settings: Settings, host: Host, options: ServerOptions) -> None:
        self._settings = settings
        self._clock = host.clock
        self._options = options
        self._host = replace(host, on_serve=self._on_serve, linger=_LINGER)
        self._serving = threading.Event()
        self._server: ApiHttpServer | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="kcm-apiserver", daemon=True)
        self.url = ""  # known once the server has started

    def start(self) -> None:
        """Begins to start the server; `wait_started` says when it listens."""
        self._thread.start()

    def _run(self) -> None:
        try:
            run(self._settings, self._options, self._host)
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
