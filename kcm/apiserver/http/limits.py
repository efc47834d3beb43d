"""How many requests may be worked on at a time, those that change things apart, and how much
of them may be held; of all clients together and of one user.

One user may take half of the places, so that others find one. Who is in system:masters
always gets one: an administrator has to be answered also by a server that is kept busy.

Source: staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go, Kubernetes 1.33. One
user's half is ours; upstream's priority and fairness shares in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kcm.apiserver.auth.users import MASTERS, User
from kcm.apiserver.refusals import TooManyRequests

_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class Limits:
    """The flags of these names; 0: no limit."""

    max_requests_inflight: int = 400  # that read
    max_mutating_requests_inflight: int = 200
    request_timeout: float = 60.0  # seconds until a request that does not end is answered with 504


def kind_of(method: str) -> str:
    """`readOnly` or `mutating`."""
    return "readOnly" if method in _READS else "mutating"


class InFlight:
    """Counts requests; used from the event loop alone."""

    def __init__(self, limits: Limits) -> None:
        self._most = {
            "readOnly": limits.max_requests_inflight,
            "mutating": limits.max_mutating_requests_inflight,
        }
        self.now = dict.fromkeys(self._most, 0)
        self._of = {kind: Counter[str]() for kind in self._most}  # by user

    @contextmanager
    def one(self, method: str, user: User) -> Iterator[None]:
        """One request. Raises TooManyRequests."""
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
            _less(mine, user.name, 1)


class Bodies:
    """Counts what is held of bodies while they come in; used from the event loop alone.

    A body takes no place in flight before it is here: one that comes slowly costs others none.
    """

    MOST = 128 * 1024 * 1024  # bytes of all
    MOST_OF_ONE = 32 * 1024 * 1024  # bytes of one user
    MOST_COMING = 100  # bodies of one user that have not come in whole

    def __init__(self) -> None:
        self._held = 0
        self._of: Counter[str] = Counter()  # bytes, by user
        self._coming: Counter[str] = Counter()  # bodies, by user

    @contextmanager
    def coming(self, user: User) -> Iterator[None]:
        """A body of which not all is here. Raises TooManyRequests."""
        if self._coming[user.name] >= self.MOST_COMING and MASTERS not in user.groups:
            raise TooManyRequests
        self._coming[user.name] += 1
        try:
            yield
        finally:
            _less(self._coming, user.name, 1)

    @contextmanager
    def held(self, user: User) -> Iterator[Held]:
        """What a request's body takes, to its end."""
        held = Held(self, user)
        try:
            yield held
        finally:
            self._held -= held.size
            _less(self._of, user.name, held.size)

    def add(self, user: User, size: int) -> None:
        """So many bytes more. Raises TooManyRequests."""
        if MASTERS not in user.groups and (
            self._held + size > self.MOST or self._of[user.name] + size > self.MOST_OF_ONE
        ):
            raise TooManyRequests
        self._held += size
        self._of[user.name] += size


class Held:
    """The bytes of one body."""

    def __init__(self, bodies: Bodies, user: User) -> None:
        self._bodies = bodies
        self._user = user
        self.size = 0

    def add(self, size: int) -> None:
        """So many bytes have come. Raises TooManyRequests."""
        self._bodies.add(self._user, size)
        self.size += size


def _less(counts: Counter[str], name: str, by: int) -> None:
    counts[name] -= by
    if not counts[name]:
        del counts[name]  # users come and go
