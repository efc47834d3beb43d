"""What the server tells a test about requests, and what the test can make of them.

The server asks `FaultRules` about each request that it has authenticated and authorized, so that a
fault hits only what would have been served. A server without rules asks nothing.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from kcm import errors
from kcm.apiserver.egress.breaking import BreaksCalls
from kcm.apiserver.request import Staleness


@dataclass(frozen=True)
class RequestFacts:
    """What faults are chosen by."""

    verb: str  # of the API: get, list, watch, create, update, patch, delete, deletecollection
    group: str
    resource: str  # the plural
    subresource: str
    namespace: str
    name: str  # of a create, the one in its body
    user: str
    agent: str  # the header User-Agent
    version: str = ""  # the parameter resourceVersion

    @property
    def full_resource(self) -> str:
        """The resource as roles write it, such as `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def qualified_resource(self) -> str:
        """The resource as messages write it, such as `deployments.apps`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def __str__(self) -> str:
        inside = f"{self.namespace}/" if self.namespace and self.resource != "namespaces" else ""
        target = f" {inside}{self.name}" if self.name or inside else ""
        resource = f"{self.qualified_resource}/{self.subresource}".rstrip("/")
        return f"{self.verb} {resource}{target} by {self.user} ({self.agent})"


# timeout: held until the client leaves or the request's timeout; cut: the connection is closed
Ending = Literal["timeout", "cut"]


@dataclass(frozen=True)
class Outcome:
    """What happens to a request: first the latency, then the end. Without an end it is served."""

    latency: float = 0.0  # seconds
    end: errors.ApiError | Ending | None = None


@dataclass(frozen=True, eq=False)
class OpenWatch:
    """A watch that is open. Both calls may come from any thread."""

    facts: RequestFacts
    cut: Callable[[], None]  # closes its connection
    expire: Callable[[], None]  # ends it with an ERROR event of code 410


class FaultRules(BreaksCalls, Protocol):
    """Decides about requests. It is called in the event loop, and must not block."""

    @property
    def active(self) -> bool:
        """Whether there is any fault; otherwise nothing else is asked."""
        ...

    def find_outcome(self, facts: RequestFacts) -> Outcome | None:
        """Returns what happens to a request, None if it is served as usual."""
        ...

    def find_staleness(self, facts: RequestFacts) -> Staleness | None:
        """Returns how old a state a read at resourceVersion 0 shows, None for the present one."""
        ...

    def find_expiry(self, facts: RequestFacts) -> int | None:
        """Returns the oldest resourceVersion that is left for a watch whose own has expired, None
        if it has not.
        """
        ...


class WatchRegister:
    """The open watches of a server, and its requests so far. Any thread may use it."""

    def __init__(self) -> None:
        # By verb, qualified resource and user agent. Only the event loop writes it.
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()
        self._open: dict[OpenWatch, None] = {}

    def add(self, watch: OpenWatch) -> None:
        """Adds a watch that has begun."""
        with self._lock:
            self._open[watch] = None

    def discard(self, watch: OpenWatch) -> None:
        """Removes a watch that has ended."""
        with self._lock:
            self._open.pop(watch, None)

    def list_open(self) -> list[OpenWatch]:
        """Returns the open watches, the oldest first."""
        with self._lock:
            return list(self._open)
