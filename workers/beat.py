"""Beat's scheduler: the leading beat sends ticks, and any number of others may stand by.

Guarantees: only the holder of the lease `beat` sends. Each message has the time when it was due and
expires after one interval, so missed passes never pile up. Two beats that send the same pass do no
harm: a pass that comes within half an interval of the last one is not run (design 0023).
"""

from __future__ import annotations

import threading
import time
from typing import Any

import structlog
from celery.beat import Scheduler

from kcm import errors
from kcm.coordination import FencedLease, new_holder
from kcm.coordination.failovers import failover_loops
from kcm.coordination.presence import HEARTBEAT_EVERY, Member, Presence
from kcm.loops import ThreadHost, contain
from kcm.manager.ticks.resting import is_resting
from kcm.redisio import RedisIO
from kcm.settings import Settings
from workers.config import FOLLOWED_LOOPS
from workers.failovers import LINKS

log = structlog.get_logger("kcm.beat")

LOOK_EVERY = 1.0  # seconds between renewals of the lease


class LeasedScheduler(Scheduler):  # type: ignore[misc] # celery has no types
    """Celery's scheduler under a lease, for entries that are plain intervals.

    Whether an entry is due takes a few comparisons here. Celery's own computation with calendars
    and time zones took half of an idle beat's time, more than sending.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._io: RedisIO | None = None
        self._lease: FencedLease | None = None
        self._presence: Presence | None = None
        self._host = ThreadHost()
        self.has_moved = threading.Event()  # another Redis is the master
        self._next_look = 0.0
        self._next_sign = 0.0
        self._due: dict[str, float] = {}  # monotonic seconds, by entry
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self.data: dict[str, Any] = {}
        self.merge_inplace(self.app.conf.beat_schedule or {})

    @property
    def schedule(self) -> dict[str, Any]:
        return self.data

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Sends the ticks that are due if this beat leads, and returns the seconds until the next
        call.
        """
        if self.has_moved.is_set():
            self._connect_again()
        if not self._check_leading():
            self._due.clear()  # the leader sends the ticks that are due meanwhile
            return LOOK_EVERY
        now = time.monotonic()
        for name, entry in self.schedule.items():
            every = entry.schedule.run_every.total_seconds()
            due = self._due.setdefault(name, now + every)
            if due <= now:
                # At the regular times; missed passes are not made up for.
                self._due[name] = due + every if due + every > now else now + every
                if not self._is_resting(name):
                    self.apply_entry(entry, producer=self.producer)
        return min(LOOK_EVERY, max(0.0, min(self._due.values(), default=now + 1) - now))

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **kw: Any) -> Any:
        entry.args = (*entry.args[:-1], round(time.time(), 3))
        return super().apply_async(entry, producer=producer, advance=advance, **kw)

    def _follow_master(self, io: RedisIO) -> None:
        def move() -> None:
            LINKS.announce_master(io.links.announced_master())
            self.has_moved.set()

        self._host.run(*failover_loops(io, move))

    def _connect_again(self) -> None:
        """Leaves the connection to the former master, which takes messages that nobody reads."""
        self.has_moved.clear()
        contain("kcm-beat", self.connection.close)
        for name in ("producer", "connection"):  # Celery makes them anew
            self.__dict__.pop(name, None)

    def close(self) -> None:
        self._host.stop()
        super().close()
        if self._lease is not None and self._presence is not None:
            try:
                self._lease.release()
                self._presence.end()
            except errors.KcmError as error:
                log.warning("the lease was not released, it expires", error=str(error))

    def _is_resting(self, loop: str) -> bool:
        followed = self.app.conf.get(FOLLOWED_LOOPS, {}).get(loop)
        if followed is None or self._io is None:
            return False
        try:
            return is_resting(self._io, loop, followed)
        except errors.KcmError:
            return False

    def _give_sign(self, now: float) -> None:
        if self._presence is not None and now >= self._next_sign:
            self._next_sign = now + HEARTBEAT_EVERY
            self._presence.once()

    def _check_leading(self) -> bool:
        now = time.monotonic()
        if self._lease is None:
            self._io = io = RedisIO(Settings(), name="kcm/beat")
            holder = new_holder("beat")
            self._lease = FencedLease(io, "beat", holder)
            self._presence = Presence(io, Member(holder, "beat"))
            self._follow_master(io)
        if now >= self._next_look:
            self._next_look = now + LOOK_EVERY
            held = self._lease.held
            try:
                self._lease.try_acquire()
                self._give_sign(now)
            except errors.KcmError as error:
                log.warning("lease could not be renewed", error=str(error))
            if self._lease.held != held:
                log.info("beat leads" if self._lease.held else "another beat leads")
        return self._lease.held
