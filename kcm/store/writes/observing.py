"""Observers of writes and syncs in this process, for tests that ask who wrote what and why.

Guarantees: an observer gets every write of the stores that have it, with the author that was set
where the write was made. Without an observer, a write costs one comparison more. Does not guarantee
that writes arrive in the order of their resourceVersions, nor that a write is seen whose reply was
lost: the watch logs have both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from kcm.redisio import RedisIO
from kcm.store.writes.items import Encoded, WriteItem, WriteResult

T = TypeVar("T")
AuthorKind = Literal["user", "controller", "component"]


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a write.

    A user has the user agent, verb and subresource of the request; a controller has the key of the
    sync, which is empty in a periodic pass. A component is a part of kcm by the name of its client.
    """

    kind: AuthorKind
    name: str
    agent: str = ""
    verb: str = ""
    subresource: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class SyncEnd:
    """The end of one sync.

    `result` is as in the metric `controller_runtime_reconcile_total`, `failures` the number of
    failed syncs of the key before this one, `delay` the seconds until the key's next sync, or None
    if none is planned.
    """

    controller: str
    key: str
    result: str
    seconds: float
    failures: int
    delay: float | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that the API server refused, or any request that authorization or a fault refused.

    `resource` is a plural name with its group. Without a `name`, it was about any object, or that
    of a create is not known.
    """

    author: Author
    resource: str
    namespace: str
    name: str
    error: str


class Observer(Protocol):
    """Is told what happens. Its methods are called in the threads that write, and must not wait."""

    def wrote(
        self,
        author: Author,
        batch: Sequence[tuple[WriteItem, Encoded]],
        results: Sequence[WriteResult],
    ) -> None:
        """Takes the items of one call, and their results in the same order."""

    def woken(self, controller: str, keys: Sequence[str], why: str) -> None:
        """Takes keys that are about to be synced, and the change because of which."""

    def synced(self, end: SyncEnd) -> None:
        """Takes the end of a sync."""

    def refused(self, refusal: Refusal) -> None:
        """Takes a request that the API server refused."""


_AUTHOR: ContextVar[Author | None] = ContextVar("author", default=None)


@contextmanager
def acting(author: Author) -> Iterator[None]:
    """Names the author of what is written within the block."""
    before = _AUTHOR.set(author)
    try:
        yield
    finally:
        _AUTHOR.reset(before)


def author_of(io: RedisIO) -> Author:
    """Returns who is writing now: the one that was named, or else the component."""
    return _AUTHOR.get() or Author("component", io.name)


def carry(call: Callable[[], T]) -> Callable[[], T]:
    """Returns the call, for another thread, with the author that this one has."""
    author = _AUTHOR.get()
    if author is None:
        return call

    def carried() -> T:
        with acting(author):
            return call()

    return carried
