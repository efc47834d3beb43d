"""The ingester, one of which at a time processes injected events (design 0021)."""

from __future__ import annotations

import structlog

from kcm.coordination import FencedLease
from kcm.loops import Loop, Turn
from kcm.store.eventbus import EventBus

log = structlog.get_logger("kcm.ingest")


class Ingester(Loop):
    """Processes the entries of the event bus while it holds the lease `ingest`.

    Refused events become dead letters.
    """

    reads = True

    def __init__(self, bus: EventBus, lease: FencedLease) -> None:
        super().__init__("kcm-ingest", lease)
        self._bus = bus
        self._held = lease

    def begin(self) -> None:
        """Creates the stream if it is missing, with its consumer group. Raises StoreUnavailable."""
        self._bus.ensure_group()

    def turn(self, patience: float) -> Turn:
        """Processes the entries that wait, or waits for the first of them."""
        entries = self._bus.read(self._held.holder, round(patience * 1000) or None)
        for entry_id, fields in entries:
            result = self._bus.process(entry_id, fields, self._held.fence)
            if result != "applied":
                log.warning("an injected event was refused", entry=entry_id, reason=result)
        return Turn(bool(entries))
