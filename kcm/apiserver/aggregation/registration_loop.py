"""The thread that keeps this server's own APIServices, and the ConfigMap for other API servers."""

from __future__ import annotations

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
from kcm.loops import Loop, Turn
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

IDLE = 30.0  # seconds between passes if nothing changes
RETRY = 1.0  # seconds between attempts while the store is unavailable
_STOP_TIMEOUT = 5.0  # seconds


class RegistrationLoop(Loop):
    """Runs a `Registration` whenever an APIService or a definition has changed."""

    def __init__(
        self,
        store: Store,
        cacher: Cacher,
        authorities: TrustedAuthorities,
        clock: Clock | None = None,
    ) -> None:
        super().__init__("kcm-registration")
        self._store = store
        self._authorities = authorities
        self._clock = clock or store.clock
        self._registration = Registration(store, cacher)
        self._ensured = float("-inf")  # when the ConfigMap was looked at
        self._data_id = ""
        self._wakes = CacheWakes(cacher, (APIService, CustomResourceDefinition), self.wake)

    def end(self) -> None:
        self._wakes.stop()

    def turn(self, patience: float) -> Turn:
        """Sees to all APIServices, and now and then to the ConfigMap. Raises StoreUnavailable."""
        self._wakes.take()
        self._registration.turn()
        now = self._clock.monotonic()
        data_id = self._store.data_id
        if data_id == self._data_id and now - self._ensured < authentication_trust.EVERY:
            return Turn(upkeep_in=IDLE)
        try:
            authentication_trust.ensure(self._store, self._authorities, self._clock.now())
        except errors.ConfigurationError as error:
            log.error("The ConfigMap for other API servers is not written", error=error.message)
        self._ensured, self._data_id = now, data_id
        return Turn(upkeep_in=IDLE)
