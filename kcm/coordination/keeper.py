"""Holds any number of leases in one loop, and shares them with the keepers of other processes.

Guarantees: for each lease `on_started` and `on_stopped` alternate, and are called in the loop's
thread. If a lease is lost and acquired again, both are called, even if no other process held the
lease in between. While a call to Redis hangs, the callbacks are late, but `FencedLease.held` and
the fence are not. Give the keeper a `RedisIO` whose socket timeout is below the lease's duration.

Whoever comes first takes a free lease. One that is shared goes on to the keeper with the greatest
weight for it (rendezvous hashing, design 0067): that keeper asks, and the holder gives it at its
next renewal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.coordination.lease import DURATION, RENEW_EVERY, FencedLease, acquire_all, check_periods
from kcm.loops import Loop, Turn
from kcm.redisio import Fence, RedisIO

log = structlog.get_logger(__name__)

_SHOWN = 5  # names of leases in one line
_GIVEN_WITHIN = 2  # renewals; a holder gives a lease at the first one after it was asked
_LOOK_EVERY = 0.1  # seconds between looks for a lease that is about to be given


@dataclass
class _KeptLease:
    """A lease, with the functions to call when it is acquired and lost."""

    lease: FencedLease
    on_started: Callable[[Fence], None]
    on_stopped: Callable[[], None]
    shares: Callable[[], bool]  # whether the lease is shared now
    started: str = ""  # the token for which on_started was called, "" after on_stopped
    asked_at: float | None = None  # when it was asked for first, on the monotonic clock


class LeaseKeeper(Loop):
    """Acquires and renews leases, and calls back when one is acquired or lost."""

    def __init__(
        self,
        io: RedisIO,
        holder: str,
        *,
        duration: float = DURATION,
        renew_every: float = RENEW_EVERY,
        clock: Clock | None = None,
    ) -> None:
        super().__init__("kcm-leases")
        check_periods("(all)", duration, renew_every)
        self.holder = holder
        self._io = io
        self._duration = duration
        self._renew_every = renew_every
        self._clock = clock or RealClock()
        self._kept: list[_KeptLease] = []

    def add(
        self,
        name: str,
        on_started: Callable[[Fence], None],
        on_stopped: Callable[[], None],
        *,
        shares: Callable[[], bool] = lambda: False,
    ) -> FencedLease:
        """Holds the lease `name` from the next turn on, if it is free.

        `shares` reports at each turn whether the lease is shared with other keepers. A holder that
        is not ready for its work yet does not ask for leases that others hold.
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
        self._kept.append(_KeptLease(lease, on_started, on_stopped, shares))
        self.wake()
        return lease

    def remove(self, lease: FencedLease) -> None:
        """Releases a lease and no longer holds it. Its callbacks are not called."""
        self._kept = [kept for kept in self._kept if kept.lease is not lease]
        try:
            lease.release()
        except errors.KcmError as error:
            log.warning("lease not released", lease=lease.name, error=str(error))

    def turn(self, patience: float) -> Turn:
        """Acquires and renews all leases in one call, then calls back for every change."""
        if not self._kept:
            return Turn()
        leases = {kept.lease: kept.shares() for kept in self._kept}
        try:
            acquire_all(self._io, self.holder, leases, self._clock)
        except errors.KcmError as error:
            log.warning("leases could not be renewed", holder=self.holder, error=str(error))
        changes = [kept for kept in self._kept if kept.lease.known_token() != kept.started]
        ended = [kept.lease for kept in changes if kept.started]
        self._log_all("lost", [e.name for e in ended if e.seen_status != "GIVEN"])
        self._log_all("given to others", [e.name for e in ended if e.seen_status == "GIVEN"])
        self._log_all("acquired", [k.lease.name for k in changes if k.lease.known_token()])
        for kept in changes:
            self._call_back(kept)
        self._note_asks()
        return Turn(upkeep_in=_LOOK_EVERY if self._expects_leases() else self._renew_every)

    def _note_asks(self) -> None:
        """Notes since when each lease has been asked for in a row."""
        for kept in self._kept:
            if kept.lease.seen_status != "ASKED":
                kept.asked_at = None
            elif kept.asked_at is None:
                kept.asked_at = self._clock.monotonic()

    def _expects_leases(self) -> bool:
        """Reports whether a lease is likely to be given to this keeper before its next renewal."""
        since = self._clock.monotonic() - _GIVEN_WITHIN * self._renew_every
        return any(kept.asked_at is not None and kept.asked_at > since for kept in self._kept)

    def _log_all(self, what: str, names: list[str]) -> None:
        """Logs that leases were acquired or lost, in one line."""
        if names:
            shown = ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])
            log.info(f"leases {what}", count=len(names), leases=shown, holder=self.holder)

    def _call_back(self, kept: _KeptLease) -> None:
        token = kept.lease.known_token()
        if kept.started:
            log.debug("lease lost", lease=kept.lease.name, holder=self.holder, token=kept.started)
            self._stop_kept(kept)
        if token:
            log.debug("lease acquired", lease=kept.lease.name, holder=self.holder, token=token)
            kept.started = token
            _call_safely(kept.lease, lambda: kept.on_started(kept.lease.fence))

    def _stop_kept(self, kept: _KeptLease) -> None:
        kept.started = ""
        _call_safely(kept.lease, kept.on_stopped)

    def end(self) -> None:
        """Calls `on_stopped` and releases all leases, so that others need not wait until they
        expire.
        """
        for kept in self._kept:
            if kept.started:
                self._stop_kept(kept)
            try:
                kept.lease.release()
            except errors.KcmError as error:
                log.warning("lease not released", lease=kept.lease.name, error=str(error))


def _call_safely(lease: FencedLease, callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:  # an error of a callback must not affect the other leases
        log.exception("lease callback failed", lease=lease.name)
