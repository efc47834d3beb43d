"""The thread that keeps this server's own APIServices, and the ConfigMap for other API servers."""

from __future__ import annotations

import threading

import structlog

from kcm import errors
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.apiregistration_v1 import APIService
from kcm.apiserver.aggregation import authentication_trust
from kcm.apiserver.aggregation.authentication_trust import TrustedAuthorities
from kcm.apiserver.aggregation.registration import Registration
from kcm.apiserver.aggregation.wakes import CacheWakes
from kcm.apiserver.cache.cacher import Cacher
from kcm.clock import Clock
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

IDLE = 30.0  # seconds between passes if nothing changes
RETRY = 1.0  # seconds between attempts while the store is unavailable
_STOP_TIMEOUT = 5.0  # seconds


class RegistrationLoop:
    """Runs a `Registration` whenever an APIService or a definition has changed."""

    def __init__(
        self,
        store: Store,
        cacher: Cacher,
        authorities: TrustedAuthorities,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._authorities = authorities
        self._clock = clock or store.clock
        self._registration = Registration(store, cacher)
        self._ensured = float("-inf")  # when the ConfigMap was looked at
        self._data_id = ""
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._wakes = CacheWakes(cacher, (APIService, CustomResourceDefinition), self._wake.set)
        self._thread: threading.Thread | None = None
        self._working = True  # until the first pass has ended

    def start(self) -> None:
        """Starts the thread."""
        self._thread = threading.Thread(target=self._run, name="kcm-registration", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT)

    @property
    def busy(self) -> bool:
        """Reports whether an APIService waits to be handled."""
        return self._working or self._wake.is_set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._working, pause = True, IDLE
            self._wake.clear()
            try:
                self.turn()
            except errors.Temporary as error:
                log.warning("APIServices cannot be handled", error=error.message)
                pause = RETRY
            except Exception:  # if the thread stopped, custom kinds would get no APIService
                log.exception("Handling APIServices failed and is retried")
                pause = RETRY
            self._working = False
            self._clock.wait(self._wake, pause)
        self._wakes.stop()

    def turn(self) -> None:
        """Sees to all APIServices, and now and then to the ConfigMap. Raises StoreUnavailable."""
        self._wakes.take()
        self._registration.turn()
        now = self._clock.monotonic()
        data_id = self._store.data_id
        if data_id == self._data_id and now - self._ensured < authentication_trust.EVERY:
            return
        try:
            authentication_trust.ensure(self._store, self._authorities, self._clock.now())
        except errors.ConfigurationError as error:
            log.error("The ConfigMap for other API servers is not written", error=error.message)
        self._ensured, self._data_id = now, data_id
