"""Renews the leases of keys in flight, in one loop per process.

Guarantees: a held lease is renewed every second, up to its renewal limit. Whether a write is still
allowed is for its fence to say: a process that was frozen learns it there.
"""

from __future__ import annotations

import threading

import structlog

from kcm.coordination.workqueue.config import RENEW_EVERY
from kcm.coordination.workqueue.queue import renew
from kcm.coordination.workqueue.types import KeyLease
from kcm.loops import Loop, Turn
from kcm.redisio import RedisIO

log = structlog.get_logger(__name__)


class Renewer(Loop):
    """Renews the leases of this process. Thread-safe."""

    def __init__(self, io: RedisIO) -> None:
        super().__init__("kcm-renewer")
        self._io = io
        self._lock = threading.Lock()
        # Both by token, which is unique over all queues.
        self._held: dict[str, KeyLease] = {}
        self._finishing: set[str] = set()

    def hold(self, *leases: KeyLease) -> None:
        """Renews these leases from now on."""
        with self._lock:
            self._held |= {lease.token: lease for lease in leases}

    def expect_end(self, *leases: KeyLease) -> None:
        """Records that the keys are about to be finished: a renewal that comes later than that is
        refused, and their leases are not lost.
        """
        with self._lock:
            self._finishing |= {lease.token for lease in leases}

    def release(self, *leases: KeyLease) -> None:
        """Stops renewing these leases, because their keys are finished."""
        with self._lock:
            for lease in leases:
                self._held.pop(lease.token, None)
                self._finishing.discard(lease.token)

    def held(self) -> list[KeyLease]:
        """Returns the leases that are being renewed."""
        with self._lock:
            return list(self._held.values())

    def once(self) -> None:
        """Renews all held leases in one call.

        Raises: StoreUnavailable; unless a later call succeeds, the leases then expire.
        """
        leases = self.held()
        if not leases:
            return
        answers = renew(self._io, leases)
        with self._lock:
            for lease, answer in zip(leases, answers, strict=True):
                if answer != "OK":
                    self._stop_renewing(lease, answer)

    def _stop_renewing(self, lease: KeyLease, answer: str) -> None:
        was_held = self._held.pop(lease.token, None) is not None
        if answer == "LIMIT":
            log.warning(
                "a sync has reached its renewal limit",
                queue=lease.queue,
                key=lease.key,
                limit_seconds=lease.renew_limit,
            )
        elif was_held and lease.token not in self._finishing:
            log.warning("the lease of a key in flight is lost", queue=lease.queue, key=lease.key)

    def turn(self, patience: float) -> Turn:
        self.once()
        return Turn(upkeep_in=RENEW_EVERY)
