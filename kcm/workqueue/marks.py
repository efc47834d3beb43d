"""Marking keys in one or several queues, in as few calls as possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kcm import errors
from kcm.redisio import Fence, RedisIO
from kcm.redisio.connection import Argument

_CHUNK = 1000  # keys a call: keeps a script under about 10 ms


@dataclass(frozen=True)
class Mark:
    """Keys of one queue that need a run, in `delay` seconds (0: now)."""

    queue: str
    keys: tuple[str, ...]
    delay: float = 0.0
    rate_limited: bool = False  # instead of `delay`: when backoff and bucket allow

    def args(self) -> list[Argument]:
        delay: Argument = self.delay * 1000 if self.delay > 0 else 0
        if self.rate_limited:
            delay = "limited"
        return [self.queue, delay, len(self.keys), *self.keys]


def mark(io: RedisIO, marks: Iterable[Mark]) -> int:
    """Mark keys; returns how many were not marked yet."""
    return sum(int(io.call("queue_add", *_flat(chunk))[1]) for chunk in _chunks(marks))


def dispatch(io: RedisIO, fence: Fence, positions: Mapping[str, int], marks: Iterable[Mark]) -> int:
    """Mark keys and store the positions up to which events are marked, under a lease (D9).

    The positions go with the last call, so that a dispatcher that dies midway
    leaves marks without a position (harmless), never a position without marks.

    Raises: Fenced when the lease is lost; nothing of that call was written.
    """
    chunks = list(_chunks(marks)) or [[]]
    added = 0
    for number, chunk in enumerate(chunks, 1):
        stored = positions if number == len(chunks) else {}
        pairs = [part for pair in stored.items() for part in pair]
        status, *rest = io.call(
            "queue_dispatch",
            *fence.args(),
            io.keys.dispatch_position(),
            len(stored),
            *pairs,
            *_flat(chunk),
        )
        if status == "FENCED":
            raise errors.Fenced
        added += int(rest[0])
    return added


def _flat(marks: Iterable[Mark]) -> list[Argument]:
    return [part for mark in marks for part in mark.args()]


def _chunks(marks: Iterable[Mark]) -> Iterator[list[Mark]]:
    chunk: list[Mark] = []
    size = 0
    for piece in (piece for mark in marks for piece in _pieces(mark)):
        if size + len(piece.keys) > _CHUNK:
            yield chunk
            chunk, size = [], 0
        chunk.append(piece)
        size += len(piece.keys)
    if chunk:
        yield chunk


def _pieces(mark: Mark) -> Iterator[Mark]:
    for start in range(0, len(mark.keys), _CHUNK):
        yield replace(mark, keys=mark.keys[start : start + _CHUNK])
