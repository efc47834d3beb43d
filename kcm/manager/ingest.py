"""The ingester, one of which at a time processes injected events (design 0021)."""

from __future__ import annotations

import threading

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.coordination import FencedLease
from kcm.store.eventbus import EventBus

log = structlog.get_logger("kcm.ingest")

BLOCK_MS = 1000  # the longest wait for an event, below the socket timeout
STANDBY_EVERY = 0.2  # seconds between checks of the lease while another manager ingests


class Ingester:
    """Processes the entries of the event bus while it holds the lease `ingest`."""

    def __init__(self, bus: EventBus, lease: FencedLease, clock: Clock) -> None:
        self._bus = bus
        self._lease = lease
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        """Ingests until `stop` is set. Refused events become dead letters, and other errors are
        logged.
        """
        ready = False
        while not stop.is_set():
            if not self._lease.held:
                ready = False
                self._clock.wait(stop, STANDBY_EVERY)
                continue
            try:
                if not ready:
                    self.prepare()
                    ready = True
                self.once()
            except errors.Fenced:
                log.info("another manager ingests now")
                self._clock.wait(stop, STANDBY_EVERY)
            except errors.KcmError as error:
                ready = False  # the stream may be gone with its consumer group
                log.warning("ingesting failed, trying again", error=str(error))
                self._clock.wait(stop, 0.5)

    def prepare(self) -> None:
        """Creates the stream if it is missing. Raises StoreUnavailable."""
        self._bus.ensure_group()

    def once(self, block_ms: int | None = BLOCK_MS) -> int:
        """Processes the waiting entries, and returns their number. It waits up to `block_ms`
        milliseconds for the first of them, None for no wait.
        """
        entries = self._bus.read(self._lease.holder, block_ms)
        for entry_id, fields in entries:
            result = self._bus.process(entry_id, fields, self._lease.fence)
            if result != "applied":
                log.warning("an injected event was refused", entry=entry_id, reason=result)
        return len(entries)
