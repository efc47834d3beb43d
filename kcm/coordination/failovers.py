"""Follows the sentinels' announcements of another master, and drops the links to the former one."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from kcm.loops import Loop, Turn
from kcm.redisio import RedisIO, sentinel
from kcm.redisio.announcements import Announcements, follow
from kcm.redisio.links import Links
from kcm.redisio.replication import MISSED_FOR

log = structlog.get_logger(__name__)

AGAIN = 2.0  # seconds until a sentinel that is away is tried again
OBSERVED_EACH = MISSED_FOR / 3  # seconds; so that the last look is never forgotten before the next


def _ignore_move() -> None:
    """Does nothing: all connections of the process are in its links."""


class FailoverLoop(Loop):
    """Listens to one sentinel. One of them leads a failover, so a process listens to all."""

    reads = True

    def __init__(
        self,
        name: str,
        announcements: Announcements,
        links: Links,
        on_move: Callable[[], None] = _ignore_move,
    ) -> None:
        """`on_move` is called in the loop after the links were dropped."""
        super().__init__(name)
        self._announcements = announcements
        self._links = links
        self._on_move = on_move
        self._is_away = False

    def turn(self, patience: float) -> Turn:
        """Waits for an announcement, and follows it."""
        try:
            announcement = self._announcements.read(patience)
        except OSError as error:
            if not self._is_away:
                log.warning("a sentinel does not answer", loop=self.name, error=str(error))
            self._is_away = True
            return Turn(rest=AGAIN)
        self._is_away = False
        if announcement is None:
            return Turn()
        address = follow(self._links, self._announcements.service, *announcement)
        if address is not None:
            log.info("another Redis is the master", host=address[0], port=address[1])
            self._on_move()
        return Turn(worked=True)

    def end(self) -> None:
        self._announcements.close()


class ReplicaLoop(Loop):
    """Notes how many replicas the master has, so that the first write after a quiet time misses
    one that was promoted in it.
    """

    def __init__(self, io: RedisIO) -> None:
        super().__init__("kcm-replicas")
        self._io = io

    def turn(self, patience: float) -> Turn:
        """Notes the replicas. Raises: StoreUnavailable."""
        self._io.observe_replicas()
        return Turn(rest=OBSERVED_EACH)


def failover_loops(io: RedisIO, on_move: Callable[[], None] = _ignore_move) -> tuple[Loop, ...]:
    """Returns the loops that keep the links of a client and those that share them with the master
    that the sentinels announce, none for a server that no sentinel watches.

    If writes wait for replicas, another one notes how many there are.
    """
    url = io.settings.effective_redis_url
    if not sentinel.is_sentinel(url):
        return ()
    loops: list[Loop] = [
        FailoverLoop(f"kcm-sentinel-{number}", Announcements(io.settings, node), io.links, on_move)
        for number, node in enumerate(sentinel.parse(url).nodes)
    ]
    if io.settings.redis_durability == "replicated":
        loops.append(ReplicaLoop(io))
    return tuple(loops)
