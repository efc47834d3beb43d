"""Heartbeats, by which it is known which processes are alive. Each process sends one every 5 s.

Guarantees: ages are measured on Redis' clock, so hosts' clocks need not agree. A process that stops
cleanly disappears at once, one that dies within 30 s. A process that is shown may have been frozen
since its last heartbeat.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from kcm.loops import Loop, Turn
from kcm.redisio import RedisIO

HEARTBEAT_EVERY = 5.0  # seconds
DEAD_AFTER = 30.0  # seconds without a heartbeat


@dataclass(frozen=True)
class Member:
    """A process, as it describes itself in its heartbeats."""

    identity: str
    kind: str  # worker, manager, beat
    name: str = ""  # the name of the Celery node, "" if it is none
    queues: tuple[str, ...] = ()  # the Celery queues that it consumes
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    parent: int = field(default_factory=os.getppid)  # groups a worker's pool children
    started: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    silent: float = 0.0  # seconds since its last heartbeat


class Presence(Loop):
    """Sends the heartbeats of one process. With `forgets`, it removes dead processes as well."""

    def __init__(self, io: RedisIO, member: Member, *, forgets: bool = False) -> None:
        super().__init__("kcm-presence")
        self._io = io
        self.member = member
        self._forgets = forgets

    def once(self) -> list[str]:
        """Sends a heartbeat, and returns the identities of processes that it removed.

        Raises: Temporary.
        """
        fields = asdict(self.member)
        del fields["identity"], fields["silent"]
        opened = json.dumps(fields, separators=(",", ":")).removesuffix("}")
        limit = round(DEAD_AFTER * 1000) if self._forgets else 0
        key = self._io.keys.workers()
        return self._io.call("worker_seen", key, self.member.identity, opened, limit, call_id="")[
            1:
        ]

    def turn(self, patience: float) -> Turn:
        self.once()
        return Turn(upkeep_in=HEARTBEAT_EVERY)

    def end(self) -> None:
        """Removes the record of this process. Raises: Temporary."""
        self._io.execute("HDEL", self._io.keys.workers(), self.member.identity)


def members(io: RedisIO) -> list[Member]:
    """Returns all processes with a heartbeat in the last 30 s, sorted by kind, host and pid."""
    now = int(io.now() * 1000)
    reply = io.execute("HGETALL", io.keys.workers())
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    all_members = [_member(identity.decode(), raw, now) for identity, raw in pairs]
    alive = [member for member in all_members if member is not None and member.silent <= DEAD_AFTER]
    return sorted(alive, key=lambda member: (member.kind, member.host, member.pid))


def _member(identity: str, raw: bytes, now: int) -> Member | None:
    """Returns the process of an entry, or None for one that is not valid in this version of kcm."""
    try:
        fields = json.loads(raw)
        silent = abs(now - int(fields.pop("last_seen"))) / 1000
        queues = tuple(fields.pop("queues", ()))
        return Member(identity, queues=queues, silent=silent, **fields)
    except (ValueError, TypeError, KeyError):
        return None  # written by another program or another version
