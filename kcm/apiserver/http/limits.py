"""Limits on requests in flight and on their bodies, for all clients and for one user.

Requests that change things have a limit of their own. One user may take half of the places, so that
others find one. Members of system:masters always get one, since an administrator must be answered
by a busy server as well.

Source: staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go, Kubernetes 1.33. The half
per user is kcm's; upstream's priority and fairness shares in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kcm.apiserver.auth.users import MASTERS, User
from kcm.apiserver.http_errors import TooManyRequests

_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class Limits:
    """The flags of these names. 0 stands for no limit."""

    max_requests_inflight: int = 400  # requests that read
    max_mutating_requests_inflight: int = 200
    request_timeout: float = 60.0  # seconds until a request that does not end is answered with 504


def kind_of(method: str) -> str:
    """Returns `readOnly` or `mutating`."""
    return "readOnly" if method in _READS else "mutating"


class InFlight:
    """Counts requests. It is used in the event loop alone."""

    def __init__(self, limits: Limits) -> None:
        self._most = {
            "readOnly": limits.max_requests_inflight,
            "mutating": limits.max_mutating_requests_inflight,
        }
        self.now = dict.fromkeys(self._most, 0)
        self._of = {kind: Counter[str]() for kind in self._most}  # keyed by user

    @contextmanager
    def admit(self, method: str, user: User) -> Iterator[None]:
        """Holds a place for one request. Raises TooManyRequests."""
        kind = kind_of(method)
        most, mine = self._most[kind], self._of[kind]
        if most > 0 and MASTERS not in user.groups:
            share = (most + 1) // 2
            if self.now[kind] >= most or mine[user.name] >= share:
                raise TooManyRequests
        self.now[kind] += 1
        mine[user.name] += 1
        try:
            yield
        finally:
            self.now[kind] -= 1
            _subtract(mine, user.name, 1)


class Bodies:
    """Counts the bytes of bodies while they come in. It is used in the event loop alone.

    A body takes no place in flight before it is read, so a slow one costs others none.
    """

    MOST = 128 * 1024 * 1024  # bytes of all bodies
    MOST_OF_ONE = 32 * 1024 * 1024  # bytes of one user
    MOST_COMING = 100  # bodies of one user that have not come in whole

    def __init__(self) -> None:
        self._held = 0
        self._of: Counter[str] = Counter()  # bytes, by user
        self._coming: Counter[str] = Counter()  # bodies, by user

    @contextmanager
    def receive(self, user: User) -> Iterator[None]:
        """Holds a body of which not all has come. Raises TooManyRequests."""
        if self._coming[user.name] >= self.MOST_COMING and MASTERS not in user.groups:
            raise TooManyRequests
        self._coming[user.name] += 1
        try:
            yield
        finally:
            _subtract(self._coming, user.name, 1)

    @contextmanager
    def hold(self, user: User) -> Iterator[HeldBody]:
        """Holds the bytes of a request's body until the request ends."""
        held = HeldBody(self, user)
        try:
            yield held
        finally:
            self._held -= held.size
            _subtract(self._of, user.name, held.size)

    def add(self, user: User, size: int) -> None:
        """Adds bytes of a user. Raises TooManyRequests."""
        if MASTERS not in user.groups and (
            self._held + size > self.MOST or self._of[user.name] + size > self.MOST_OF_ONE
        ):
            raise TooManyRequests
        self._held += size
        self._of[user.name] += size


class HeldBody:
    """The bytes of one body."""

    def __init__(self, bodies: Bodies, user: User) -> None:
        self._bodies = bodies
        self._user = user
        self.size = 0

    def add(self, size: int) -> None:
        """Adds bytes that have come. Raises TooManyRequests."""
        self._bodies.add(self._user, size)
        self.size += size


def _subtract(counts: Counter[str], name: str, by: int) -> None:
    counts[name] -= by
    if not counts[name]:
        del counts[name]  # users come and go
