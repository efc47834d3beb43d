"""One thread that holds any number of leases.

Guarantees: `on_started` and `on_stopped` alternate per lease, in the keeper's thread; a new term
always comes with its own `on_stopped` and `on_started`, even if no one else held the lease in
between. While a call to Redis hangs, the callbacks are late; `FencedLease.held` and the fence are
not. Give the keeper a `RedisIO` whose socket timeout is below the lease's duration.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.coordination.lease import DURATION, RENEW_EVERY, FencedLease, acquire_all, check_periods
from kcm.redisio import Fence, RedisIO

log = structlog.get_logger(__name__)


@dataclass
class _KeptLease:
    """A lease, and what to call when its terms start and end."""

    lease: FencedLease
    on_started: Callable[[Fence], None]
    on_stopped: Callable[[], None]
    started: str = ""  # the token that on_started was called with


class LeaseKeeper:
    """Acquires and renews leases, and calls back when a term starts or ends."""

    def __init__(
        self,
        io: RedisIO,
        holder: str,
        *,
        duration: float = DURATION,
        renew_every: float = RENEW_EVERY,
        clock: Clock | None = None,
    ) -> None:
        check_periods("(all)", duration, renew_every)
        self.holder = holder
        self._io = io
        self._duration = duration
        self._renew_every = renew_every
        self._clock = clock or RealClock()
        self._kept: list[_KeptLease] = []

    def add(
        self, name: str, on_started: Callable[[Fence], None], on_stopped: Callable[[], None]
    ) -> FencedLease:
        """Holds `name` from the next pass on. Call it for the first lease before `run`.

        The callbacks must return at once. One that raises is logged, and the lease is kept.
        """
        lease = FencedLease(
            self._io,
            name,
            self.holder,
            duration=self._duration,
            renew_every=self._renew_every,
            clock=self._clock,
        )
        self._kept.append(_KeptLease(lease, on_started, on_stopped))
        return lease

    def remove(self, lease: FencedLease) -> None:
        """Gives a lease up and keeps it no more. Its callbacks are not called."""
        self._kept = [kept for kept in self._kept if kept.lease is not lease]
        try:
            lease.release()
        except errors.KcmError as error:
            log.warning("lease not released", lease=lease.name, error=str(error))

    def once(self) -> None:
        """Acquires and renews everything in one call, then calls back for every change."""
        try:
            acquire_all(self._io, self.holder, [kept.lease for kept in self._kept], self._clock)
        except errors.KcmError as error:
            log.warning("leases could not be renewed", holder=self.holder, error=str(error))
        for kept in self._kept:
            self._tell(kept)

    def _tell(self, kept: _KeptLease) -> None:
        token = kept.lease.known_token()
        if token == kept.started:
            return
        if kept.started:
            log.info("lease lost", lease=kept.lease.name, holder=self.holder, token=kept.started)
            self._end_term(kept)
        if token:
            log.info("lease acquired", lease=kept.lease.name, holder=self.holder, token=token)
            kept.started = token
            _call_safely(kept.lease, lambda: kept.on_started(kept.lease.fence))

    def _end_term(self, kept: _KeptLease) -> None:
        kept.started = ""
        _call_safely(kept.lease, kept.on_stopped)

    def run(self, stop: threading.Event) -> None:
        """Keeps the leases until `stop`, then calls `on_stopped` and gives them up."""
        if not self._kept:
            return
        while not stop.is_set():
            self.once()
            self._clock.wait(stop, self._renew_every)
        self.release()

    def release(self) -> None:
        """Gives every lease up, so that others need not wait."""
        for kept in self._kept:
            if kept.started:
                self._end_term(kept)
            try:
                kept.lease.release()
            except errors.KcmError as error:
                log.warning("lease not released", lease=kept.lease.name, error=str(error))


def _call_safely(lease: FencedLease, callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:  # a callback's fault must not cost the other leases
        log.exception("lease callback failed", lease=lease.name)
