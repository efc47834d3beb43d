"""Waits until replicas have what was written (design 0066).

Guarantees: when `confirm` returns, as many replicas as any process has seen in step within the last
MISSED_FOR seconds, and at least as many as the settings say, have every write whose reply the
caller had before, in the same term of the master. Callers that come while one waits share the next
wait, so that a burst of writes costs one.

A replica that is promoted leaves its master, which goes on until a sentinel tells it otherwise,
some ten seconds later. That is why one that has left is missed for longer than that. The master
itself keeps how many it had, for processes that write seldom or have just started.

Does not guarantee that a write is lost for which it raises: it was made, and may be replicated yet.

Source: the reply of WAIT counts the replicas that have acknowledged the replication offset of the
client's last write, which is beyond that of all writes before it, of whatever client they were
(`waitCommand` in src/replication.c). So each wait begins with a write of its own. Redis 7.0 takes
the offset of the client's last command instead; Valkey 9 does not.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.redisio.keys import Keys

MISSED_FOR = 15.0  # seconds for which a replica that has left is waited for
_MISSED_FOR_MS = round(MISSED_FOR * 1000)
_INFO = "INFO replication"  # in one string: the driver leaves the reply as it is


@dataclass(frozen=True)
class _Round:
    """The result of one wait: of which term the master was before and after it, how many replicas
    had all writes, and how many had to.
    """

    terms: frozenset[str] = frozenset()
    replicas: int = 0
    wanted: int = 0
    error: str = ""


class _Seen:
    """The replicas that each server had in step within the last seconds, by its term.

    While a failover goes on, a process may be led to the new master and once more to the former
    one, which has lost the promoted replica meanwhile.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[tuple[str, int], float] = {}  # when a term had so many

    def most(self, term: str, count: int) -> int:
        """Returns the largest number within the last seconds, with the one that is seen now."""
        now = self._clock.monotonic()
        self._times[term, count] = now
        self._times = {key: at for key, at in self._times.items() if now - at < MISSED_FOR}
        return max(number for seen, number in self._times if seen == term)


class ReplicationWait:
    """The waits of a process for the replicas of one server. Thread-safe."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        least: int,
        seconds: float,
        clock: Clock | None = None,
    ) -> None:
        """`client` is for the waits alone. Each wait takes `seconds` at most, and needs at least so
        many replicas.
        """
        self._client = client
        self._keys = keys
        self._least = least
        self._seconds = seconds
        self._seen = _Seen(clock or RealClock())
        self._changed = threading.Condition()
        self._is_waiting = False  # whether a caller waits for the replicas, for all others
        self._begun = 0  # rounds
        self._last = (0, _Round())  # the number and the result of the last one that has ended

    def confirm(self, term: str) -> None:
        """Waits until the replicas have all writes that were made in this term before the call.

        Raises: NotReplicated.
        """
        ended = self._next_round()
        if ended.terms == {term} and ended.replicas >= ended.wanted:
            return
        if ended.error:
            why = f"Redis did not answer: {ended.error}"
        elif ended.terms != {term}:
            why = "another server is the master now"
        else:
            why = f"{ended.replicas} of {ended.wanted} replicas had it after {self._seconds:g} s"
        raise errors.NotReplicated(
            f"Timeout: the write was made, and may be lost ({why}); look whether it is there "
            "before trying again"
        )

    def _next_round(self) -> _Round:
        """Returns the result of a round that begins after the call."""
        with self._changed:
            mine = self._begun + 1
            while self._is_waiting and self._last[0] < mine:
                self._changed.wait()
            if self._last[0] >= mine:
                return self._last[1]
            self._is_waiting = True
            self._begun = number = self._begun + 1
        ended = _Round(error="the wait was ended")
        try:
            ended = self._wait()
        finally:
            with self._changed:
                self._is_waiting, self._last = False, (number, ended)
                self._changed.notify_all()
        return ended

    def _wait(self) -> _Round:
        """Asks the master for its term and its replicas, waits for these, and asks again: in
        between it may have become a replica, and even the master once more.
        """
        try:
            term, wanted, note = self._look()
            with self._client.pipeline(transaction=False) as pipe:
                if note:
                    pipe.execute_command(*note)  # type: ignore[no-untyped-call] # the driver's gap
                pipe.execute_command("SET", self._keys.replicated(), term)  # type: ignore[no-untyped-call] # the driver's gap
                pipe.execute_command("WAIT", wanted, round(self._seconds * 1000))  # type: ignore[no-untyped-call] # the driver's gap
                pipe.execute_command(_INFO)  # type: ignore[no-untyped-call] # the driver's gap
                *_, replicas, after = pipe.execute()
        except (redis.RedisError, OSError) as error:
            return _Round(error=str(error))
        terms = frozenset((term, _term_of(_parse(after))))
        return _Round(terms, int(replicas), wanted)

    def observe(self) -> None:
        """Notes how many replicas the master has now. Raises: StoreUnavailable."""
        try:
            *_, note = self._look()
            if note:
                self._client.execute_command(*note)  # type: ignore[no-untyped-call] # the driver's gap
        except (redis.RedisError, OSError) as error:
            raise errors.StoreUnavailable(f"Redis did not answer: {error}") from error

    def _look(self) -> tuple[str, int, Sequence[str | int]]:
        """Returns the term of the master, how many replicas a write has to reach, and the command
        that notes these for other processes, empty if they are not all there or need no note.
        """
        seen_key = self._keys.replicas_seen()
        with self._client.pipeline(transaction=False) as pipe:
            pipe.execute_command(_INFO)  # type: ignore[no-untyped-call] # the driver's gap
            pipe.execute_command("GET", seen_key)  # type: ignore[no-untyped-call] # the driver's gap
            info, noted = pipe.execute()
        replication = _parse(info)
        term, count = _term_of(replication), _count_in_step(replication)
        wanted = max(self._least, self._seen.most(term, count), _read_note(noted, term))
        if count < wanted or count <= self._least:
            return term, wanted, ()
        return term, wanted, ("SET", seen_key, f"{term} {count}", "PX", _MISSED_FOR_MS)


def _read_note(note: bytes | None, term: str) -> int:
    """Returns how many replicas a process has noted in this term, 0 for none."""
    noted_term, _, count = (note or b"").partition(b" ")
    return int(count) if noted_term == term.encode() and count.isdigit() else 0


def _parse(info: Any) -> dict[bytes, bytes]:
    return dict(line.partition(b":")[::2] for line in bytes(info).split(b"\r\n"))


def _term_of(replication: dict[bytes, bytes]) -> str:
    """Returns the replication id of a master, "" of a server without one."""
    is_master = replication.get(b"role") == b"master"
    return replication.get(b"master_replid", b"").decode() if is_master else "-"


def _count_in_step(replication: dict[bytes, bytes]) -> int:
    """Returns the number of replicas that get what is written."""
    return sum(
        name.startswith(b"slave") and name[5:].isdigit() and b"state=online" in value
        for name, value in replication.items()
    )
