"""Renewing the leases of keys in flight, in one thread per process.

Guarantees: a held lease is renewed every second, up to its renewal limit, and `is_lost` turns true
no later than the lease ends on the server: it rests on this process's monotonic clock, read before
the take or renewal was sent, so a process that was frozen knows without asking. Does not guarantee
that a run which looks only before its last write is in time: the fence does.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import structlog

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.redisio import RedisIO
from kcm.workqueue.config import RENEW_EVERY
from kcm.workqueue.queue import renew
from kcm.workqueue.types import KeyLease

log = structlog.get_logger(__name__)


@dataclass
class _HeldLease:
    lease: KeyLease
    until: float  # monotonic: when the lease ends unless renewed
    last_extension: bool = False
    lost: bool = False


class Renewer:
    """Renews the leases that this process holds."""

    def __init__(self, io: RedisIO, *, clock: Clock | None = None) -> None:
        self._io = io
        self._clock = clock or RealClock()
        self._lock = threading.Lock()
        self._held: dict[str, _HeldLease] = {}  # by token: unique over all queues

    def hold(self, *leases: KeyLease) -> None:
        """Renews these leases from now on."""
        with self._lock:
            for lease in leases:
                duration = min(lease.duration, lease.renew_limit)
                self._held[lease.token] = _HeldLease(lease, lease.taken_at + duration)

    def release(self, *leases: KeyLease) -> None:
        """Stops renewing these leases, for their keys are finished."""
        with self._lock:
            for lease in leases:
                self._held.pop(lease.token, None)

    def is_lost(self, lease: KeyLease) -> bool:
        """Reports whether someone else may run the key by now, as far as this process can tell."""
        with self._lock:
            held = self._held.get(lease.token)
        return held is None or held.lost or self._clock.monotonic() >= held.until

    def held(self) -> list[KeyLease]:
        """Returns the leases that are renewed at this moment."""
        with self._lock:
            return [held.lease for held in self._held.values()]

    def once(self) -> None:
        """Renews every held lease, in one call.

        Raises: StoreUnavailable; the leases then run out by themselves.
        """
        with self._lock:
            open_ = [h for h in self._held.values() if not (h.lost or h.last_extension)]
        if not open_:
            return
        before = self._clock.monotonic()
        answers = renew(self._io, [held.lease for held in open_])
        with self._lock:
            for held, answer in zip(open_, answers, strict=True):
                self._note(held, answer, before)

    def _note(self, held: _HeldLease, answer: str, before: float) -> None:
        lease = held.lease
        if answer == "LOST":
            # A finish may have ended the run while the renewal was on its way.
            if lease.token in self._held:
                held.lost = True
                log.warning("lease of a running key is lost", queue=lease.queue, key=lease.key)
            return
        held.until = min(before + lease.duration, lease.taken_at + lease.renew_limit)
        if answer == "LIMIT":
            held.last_extension = True
            log.warning(
                "run reached its renewal limit",
                queue=lease.queue,
                key=lease.key,
                limit_seconds=lease.renew_limit,
            )

    def run(self, stop: threading.Event) -> None:
        """Renews every second until `stop`. A store that does not answer is waited out."""
        while not self._clock.wait(stop, RENEW_EVERY):
            try:
                self.once()
            except errors.KcmError as error:
                log.warning("renewal failed", error=str(error))
