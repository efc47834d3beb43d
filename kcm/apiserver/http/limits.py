"""Limits on requests in flight, on the bytes of their bodies, and on watches, for each user.

Requests that the server handles itself are limited by priority and fairness
(`kcm.apiserver.flowcontrol`); those that it passes on are limited here. Mutating requests have a
limit of their own. One user may use half of a limit. Members of system:masters are exempt, since a
busy server must respond to its administrator, too.

Source: staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go, Kubernetes 1.33. The half
for each user and the limit on watches are kcm's; upstream shares by priority and fairness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as CounterMetric

from kcm.apiserver.auth.attributes import MASTERS, User
from kcm.apiserver.http.notices import Notices, Tell, tell_nobody
from kcm.apiserver.http_errors import TooManyRequests

log = structlog.get_logger("kcm.apiserver")

_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class Limits:
    """The values of the flags of the same names. 0 means no limit."""

    max_requests_inflight: int = 400  # requests that read
    max_mutating_requests_inflight: int = 200
    request_timeout: float = 60.0  # seconds after which a request gets 504
    # A kubelet has one for each ConfigMap and Secret that its pods use, and all pods of a DaemonSet
    # are one user.
    max_watches_per_user: int = 1000
    # A few hundred kubelets that come back at once, through one address, wait in it for a second.
    max_unauthenticated_connections_per_address: int = 500
    tls_handshake_timeout: float = 10.0  # seconds; Go's clients themselves wait no longer


def kind_of(method: str) -> str:
    """Returns `readOnly` or `mutating`, the kind of a request with this method."""
    return "readOnly" if method in _READS else "mutating"


class InFlight:
    """Counts the requests in flight. Only the event loop's thread may use it."""

    def __init__(self, most: int = 0) -> None:
        """At most `most` requests that read and as many that mutate are admitted; 0 means no
        limit.
        """
        self._most = most
        self.now = {"readOnly": 0, "mutating": 0}
        self._of = {kind: Counter[str]() for kind in self.now}  # keyed by user

    @contextmanager
    def admit(self, method: str, user: User) -> Iterator[None]:
        """Counts a request as in flight while the context lasts. Raises TooManyRequests."""
        kind = kind_of(method)
        mine = self._of[kind]
        if self._most > 0 and MASTERS not in user.groups:
            share = (self._most + 1) // 2
            if self.now[kind] >= self._most or mine[user.name] >= share:
                raise TooManyRequests
        self.now[kind] += 1
        mine[user.name] += 1
        try:
            yield
        finally:
            self.now[kind] -= 1
            _subtract(mine, user.name, 1)


class OpenWatches:
    """Counts the open watches of each user. Only the event loop's thread may use it."""

    def __init__(self, most: int, registry: CollectorRegistry, tell: Tell = tell_nobody) -> None:
        """A user may have `most` of them, members of system:masters any number; 0 means no
        limit. `tell` makes an Event.
        """
        self._most = most
        self._tell = tell
        self._by_user: Counter[str] = Counter()
        self._refusals = Notices()
        self._refused = CounterMetric(
            "kcm_apiserver_watches_refused",
            "Watches that got 429, since their user had too many.",
            registry=registry,
        )

    @contextmanager
    def hold(self, user: User) -> Iterator[None]:
        """Counts a watch as open while the context lasts. Raises TooManyRequests."""
        if 0 < self._most <= self._by_user[user.name] and MASTERS not in user.groups:
            self._refused.inc()
            if (refused := self._refusals.count(user.name)) is not None:
                log.warning(
                    "Watches are refused: their user has too many",
                    user=user.name,
                    limit=self._most,
                    refused=refused,
                )
                self._tell(
                    "TooManyWatches",
                    f'user "{user.name}" has {self._most} watches open, the most of one user '
                    "(--max-watches-per-user): more are refused",
                )
            raise TooManyRequests
        self._by_user[user.name] += 1
        try:
            yield
        finally:
            _subtract(self._by_user, user.name, 1)


class Bodies:
    """Counts the bytes of request bodies in memory. Only the event loop's thread may use it.

    A request is not in flight before its body is read, so slow bodies do not block other requests.
    """

    MOST = 128 * 1024 * 1024  # bytes of all bodies
    MOST_OF_ONE = 32 * 1024 * 1024  # bytes of one user
    MOST_COMING = 100  # the most incomplete bodies of one user

    def __init__(self) -> None:
        self._held = 0
        self._of: Counter[str] = Counter()  # bytes, by user
        self._coming: Counter[str] = Counter()  # bodies, by user

    @contextmanager
    def receive(self, user: User) -> Iterator[None]:
        """Counts a body as incomplete while the context lasts. Raises TooManyRequests."""
        if self._coming[user.name] >= self.MOST_COMING and MASTERS not in user.groups:
            raise TooManyRequests
        self._coming[user.name] += 1
        try:
            yield
        finally:
            _subtract(self._coming, user.name, 1)

    @contextmanager
    def hold(self, user: User) -> Iterator[HeldBody]:
        """Yields a counter for the bytes of one body, which count until the context ends."""
        held = HeldBody(self, user)
        try:
            yield held
        finally:
            self._held -= held.size
            _subtract(self._of, user.name, held.size)

    def add(self, user: User, size: int) -> None:
        """Counts further bytes of a user's bodies. Raises TooManyRequests."""
        if MASTERS not in user.groups and (
            self._held + size > self.MOST or self._of[user.name] + size > self.MOST_OF_ONE
        ):
            raise TooManyRequests
        self._held += size
        self._of[user.name] += size


class HeldBody:
    """Counts the bytes of one body."""

    def __init__(self, bodies: Bodies, user: User) -> None:
        self._bodies = bodies
        self._user = user
        self.size = 0

    def add(self, size: int) -> None:
        """Counts bytes that were received. Raises TooManyRequests."""
        self._bodies.add(self._user, size)
        self.size += size


class Answers:
    """Counts the bytes of answers until they are sent. Only the event loop's thread may use it.

    A client that reads slowly, or not at all, has the server keep the rest of its answer.
    """

    MOST_OF_ONE = 256 * 1024 * 1024  # bytes of one user; a single answer may have more

    def __init__(self) -> None:
        self._by_user: Counter[str] = Counter()

    @contextmanager
    def hold(self, user: User, size: int) -> Iterator[None]:
        """Counts the bytes of an answer while the context lasts. Raises TooManyRequests."""
        held = self._by_user[user.name]
        if held and held + size > self.MOST_OF_ONE and MASTERS not in user.groups:
            raise TooManyRequests
        self._by_user[user.name] += size
        try:
            yield
        finally:
            _subtract(self._by_user, user.name, size)


def _subtract(counts: Counter[str], name: str, by: int) -> None:
    counts[name] -= by
    if not counts[name]:
        del counts[name]  # keeps no entries of users without requests
