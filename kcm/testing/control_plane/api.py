"""The API server of a control plane, in a thread of the test's process."""

from __future__ import annotations

import threading

from kcm import errors
from kcm.apiserver.faults.gate import ServerFaults
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.running import ServerOptions, run
from kcm.apiserver.serving import Address, ApiHttpServer
from kcm.settings import Settings

START_TIMEOUT = 30.0  # seconds
_STOP_TIMEOUT = 15.0  # seconds; the server gives requests 5 s


class ApiThread:
    """Runs the API server on a free port of the loopback interface, with TLS and RBAC."""

    def __init__(self, settings: Settings, faults: ServerFaults) -> None:
        self._settings = settings
        self._faults = faults
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
            run(self._settings, options, self._on_serve)
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

    def ask_to_stop(self) -> None:
        """Makes the server end, after the requests in progress."""
        if self._server is not None:
            self._server.should_exit = True

    def stop(self) -> None:
        """Stops the server, and waits until it has ended."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT)
