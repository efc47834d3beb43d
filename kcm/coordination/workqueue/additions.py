"""Adds keys to one or several queues, in as few calls as possible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from kcm import errors
from kcm.coordination.workqueue.types import KeyLease, parse_leases
from kcm.redisio import Fence, RedisIO
from kcm.redisio.commands import Argument

_CHUNK = 1000  # keys per call, so that a script takes less than about 10 ms


@dataclass(frozen=True)
class Addition:
    """Keys to add to one queue in `delay` seconds (0: now)."""

    queue: str
    keys: tuple[str, ...]
    delay: float = 0.0
    rate_limited: bool = False  # instead of `delay`: add them when back-off and token bucket allow

    def args(self) -> list[Argument]:
        """Returns the addition in the form that the scripts `queue_add` and `queue_dispatch`
        read.
        """
        delay: Argument = self.delay * 1000 if self.delay > 0 else 0
        if self.rate_limited:
            delay = "limited"
        return [self.queue, delay, len(self.keys), *self.keys]


@dataclass(frozen=True)
class Dispatched:
    """What a dispatch has done."""

    added: int = 0  # keys that were not waiting already
    # The keys that were taken, by the queues that were named as waiting.
    taken: Mapping[str, Sequence[KeyLease]] = field(default_factory=dict)


def add_keys(io: RedisIO, additions: Iterable[Addition]) -> int:
    """Adds keys, and returns the number of those that were not waiting already. Raises
    StoreUnavailable.
    """
    return sum(int(io.call("queue_add", *_flatten(chunk))[1]) for chunk in _chunks(additions))


def dispatch(
    io: RedisIO,
    fence: Fence,
    positions: Mapping[str, int],
    additions: Iterable[Addition],
    *,
    went_back: bool = False,
    waiting: Collection[str] = (),
) -> Dispatched:
    """Adds keys and stores the positions up to which they were dispatched, under a fence (design
    0005). Takes keys for the queues of which runs are `waiting` (design 0084).

    `positions` are the resourceVersions by resource. They are stored by the last call: a dispatcher
    that dies midway leaves keys without a position, which is harmless, and never a position without
    its keys. A position only increases, unless the data `went_back`, such as those of a restored
    etcd.

    Raises: Fenced when the lease is lost (that call wrote nothing), StoreUnavailable.
    """
    chunks = list(_chunks(additions)) or [[]]
    done = Dispatched()
    for number, chunk in enumerate(chunks, 1):
        is_last = number == len(chunks)
        stored, runs = (positions, waiting) if is_last else ({}, ())
        shown = {name: f"={at}" if went_back else at for name, at in stored.items()}
        pairs = [part for pair in shown.items() for part in pair]
        status, *rest = io.call(
            "queue_dispatch",
            *fence.args(),
            io.keys.dispatch_position(),
            len(stored),
            *pairs,
            len(runs),
            *runs,
            *_flatten(chunk),
        )
        if status == "FENCED":
            raise errors.Fenced
        added, *parts = rest
        taken = _parse_taken(io, runs, parts)
        done = Dispatched(done.added + int(added), taken)
    return done


def _parse_taken(
    io: RedisIO, runs: Collection[str], parts: Sequence[str]
) -> dict[str, list[KeyLease]]:
    rest = iter(parts)
    return {
        queue: parse_leases(queue, io.keys.queue(queue, "running"), list(islice(rest, int(size))))
        for queue, size in zip(runs, rest, strict=False)
    }


def _flatten(additions: Iterable[Addition]) -> list[Argument]:
    return [part for addition in additions for part in addition.args()]


def _chunks(additions: Iterable[Addition]) -> Iterator[list[Addition]]:
    """Yields lists of additions, each for one call."""
    chunk: list[Addition] = []
    size = 0
    for piece in (piece for addition in additions for piece in _pieces(addition)):
        if size + len(piece.keys) > _CHUNK:
            yield chunk
            chunk, size = [], 0
        chunk.append(piece)
        size += len(piece.keys)
    if chunk:
        yield chunk


def _pieces(addition: Addition) -> Iterator[Addition]:
    for start in range(0, len(addition.keys), _CHUNK):
        yield replace(addition, keys=addition.keys[start : start + _CHUNK])
