"""Renews the leases of keys in flight, in one loop per process.

Guarantees: a held lease is renewed every second, up to its renewal limit, and `is_lost` becomes
true no later than the lease ends on the server. It compares this process's monotonic clock with its
value before the take or renewal was sent, so that a process that was frozen knows without asking. A
check just before a write may still come too early; only the fence protects the write.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import structlog

from kcm.clock import Clock, RealClock
from kcm.coordination.workqueue.config import RENEW_EVERY
from kcm.coordination.workqueue.queue import renew
from kcm.coordination.workqueue.types import KeyLease
from kcm.loops import Loop, Turn
from kcm.redisio import RedisIO

log = structlog.get_logger(__name__)


@dataclass
class _HeldLease:
    lease: KeyLease
    until: float  # the end of the lease unless it is renewed, on the monotonic clock
    last_extension: bool = False
    lost: bool = False


class Renewer(Loop):
    """Renews the leases of this process. Thread-safe."""

    def __init__(self, io: RedisIO, *, clock: Clock | None = None) -> None:
        super().__init__("kcm-renewer")
        self._io = io
        self._clock = clock or RealClock()
        self._lock = threading.Lock()
        self._held: dict[str, _HeldLease] = {}  # by token, which is unique over all queues

    def hold(self, *leases: KeyLease) -> None:
        """Renews these leases from now on."""
        with self._lock:
            for lease in leases:
                duration = min(lease.duration, lease.renew_limit)
                self._held[lease.token] = _HeldLease(lease, lease.taken_at + duration)

    def release(self, *leases: KeyLease) -> None:
        """Stops renewing these leases, because their keys are finished."""
        with self._lock:
            for lease in leases:
                self._held.pop(lease.token, None)

    def is_lost(self, lease: KeyLease) -> bool:
        """Reports whether another worker may run the key by now, as far as this process knows."""
        with self._lock:
            held = self._held.get(lease.token)
        return held is None or held.lost or self._clock.monotonic() >= held.until

    def held(self) -> list[KeyLease]:
        """Returns the leases that are being renewed."""
        with self._lock:
            return [held.lease for held in self._held.values()]

    def once(self) -> None:
        """Renews all held leases in one call.

        Raises: StoreUnavailable; unless a later call succeeds, the leases then expire.
        """
        with self._lock:
            open_ = [h for h in self._held.values() if not (h.lost or h.last_extension)]
        if not open_:
            return
        before = self._clock.monotonic()
        answers = renew(self._io, [held.lease for held in open_])
        with self._lock:
            for held, answer in zip(open_, answers, strict=True):
                self._apply(held, answer, before)

    def _apply(self, held: _HeldLease, answer: str, before: float) -> None:
        lease = held.lease
        if answer == "LOST":
            # The sync may have been finished while the renewal was being sent.
            if lease.token in self._held:
                held.lost = True
                log.warning(
                    "the lease of a key in flight is lost", queue=lease.queue, key=lease.key
                )
            return
        held.until = min(before + lease.duration, lease.taken_at + lease.renew_limit)
        if answer == "LIMIT":
            held.last_extension = True
            log.warning(
                "a sync has reached its renewal limit",
                queue=lease.queue,
                key=lease.key,
                limit_seconds=lease.renew_limit,
            )

    def turn(self, patience: float) -> Turn:
        self.once()
        return Turn(upkeep_in=RENEW_EVERY)
