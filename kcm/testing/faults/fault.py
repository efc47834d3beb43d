"""The faults that requests meet: what each is about, how often it strikes, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self

from kcm.apiserver.egress.breaking import CallBreak
from kcm.apiserver.filters.fault_rules import Ending, Outcome, RequestFacts
from kcm.apiserver.request import Staleness
from kcm.testing.faults import answers
from kcm.testing.faults.answers import ErrorCode
from kcm.testing.faults.target import Target

_MOST_MISSED = 8  # that are told


@dataclass(frozen=True)
class Hit:
    """One entry of the log: when which fault hit what. The time is that of the clock."""

    at: datetime
    fault: str
    request: str

    def __str__(self) -> str:
        return f"{self.at.isoformat()} {self.fault}: {self.request}"


class Fault:
    """A fault that is in force from when it is made until it is removed or used up.

    It can be used as a context manager, which removes it at its end, and raises AssertionError if
    it was never hit: then it was about other requests than the test thinks.
    """

    must_hit = True  # at the end of its context

    def __init__(self, title: str, times: int | None = None, after: int = 0) -> None:
        """It lets the first `after` requests pass, and strikes `times` times, or for ever."""
        if times is not None and times < 1:
            raise ValueError(f"times={times} never strikes: use 1 or more, or None for ever")
        if after < 0:
            raise ValueError(f"after={after} is negative: use 0 to strike at once")
        self.hits = 0  # how often it has struck
        self._title = title
        self._missed: dict[str, None] = {}  # who or what it was not about
        self._times = times
        self._to_pass = after
        self._remove: Callable[[Fault], None] = lambda _: None

    def bind(self, remove: Callable[[Fault], None]) -> None:
        """Sets what removes the fault."""
        self._remove = remove

    @property
    def used_up(self) -> bool:
        """Whether it has struck as often as it should."""
        return self._times is not None and self.hits >= self._times

    def strike(self) -> bool:
        """Counts a request that the fault is about. Reports whether the fault hits it."""
        if self.used_up:
            return False
        if self._to_pass:
            self._to_pass -= 1
            return False
        self.hits += 1
        return True

    def miss(self, what: str) -> None:
        """Notes who made a request, or what was called, that the fault is not about."""
        if len(self._missed) < _MOST_MISSED:
            self._missed[what] = None

    def remove(self) -> None:
        """Ends the fault. May be called again."""
        self._remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()
        if error is None and self.must_hit and not self.hits:
            instead = ", ".join(self._missed) or "nobody"
            raise AssertionError(
                f"this fault was never hit: {self}; not hit were {instead}. If that is as it "
                "should be, give must_hit=False"
            )

    def __str__(self) -> str:
        return self._title

    def __repr__(self) -> str:
        of = f" of {self._times}" if self._times is not None else ""
        return f"<Fault {self._title}, {self.hits}{of} hits>"


class ApiFault(Fault):
    """Requests fail, or are answered late."""

    def __init__(
        self,
        target: Target,
        error: ErrorCode | Ending | None,
        *,
        latency: float,
        retry_after: int,
        times: int | None,
        after: int,
    ) -> None:
        answers.check(error, target.verb)
        if latency < 0:
            raise ValueError(f"latency={latency} is negative: use seconds from 0 on")
        if error is None and not latency:
            raise ValueError("nothing is to happen: give an error, a latency, or both")
        what = [f"{latency:g} s later"] if latency else []
        what += [str(error)] if error else []
        super().__init__(f"{target}: {', '.join(what)}", times, after)
        self._target = target
        self._error = error
        self._latency = latency
        self._retry_after = retry_after

    def matches(self, facts: RequestFacts) -> bool:
        """Reports whether the fault is about a request."""
        error = self._error
        if isinstance(error, int) and facts.verb not in answers.ANSWERS[error].verbs:
            return False
        return self._target.matches(facts)

    def outcome(self, facts: RequestFacts) -> Outcome:
        """Returns what happens to a request."""
        error = self._error
        if not isinstance(error, int):
            return Outcome(self._latency, error)
        answer = answers.ANSWERS[error]
        return Outcome(self._latency, answer.build(facts, self._retry_after))


class ExpiryFault(Fault):
    """Watches from a resourceVersion that is not newer than `version` expire, once per client.

    A client is a user with a user agent. One that has listed the kind since is not hit.
    """

    def __init__(self, target: Target, version: int) -> None:
        super().__init__(f"watches of {target.resource or 'any resource'} expired")
        self._target = target
        self._done: set[tuple[str, str, str]] = set()
        self.version = version

    def hits_watch(self, facts: RequestFacts) -> bool:
        """Reports whether a watch expires that begins now. A list is taken note of."""
        if not self._target.matches(facts) or facts.verb not in ("list", "watch"):
            return False
        client = (facts.user, facts.agent, facts.qualified_resource)
        if facts.verb == "watch" and (not facts.version.isdigit() or facts.version == "0"):
            self._done.add(client)  # it begins with the present objects, as a list does
            return False
        if client in self._done:
            return False
        if facts.verb == "list":
            self._done.add(client)
            return False
        if int(facts.version) > self.version:
            return False
        self._done.add(client)
        return self.strike()


class StaleFault(Fault):
    """Reads at resourceVersion 0 show an older state."""

    def __init__(
        self, target: Target, staleness: Staleness, *, times: int | None, after: int
    ) -> None:
        since = f"since {staleness.version}" if staleness.version else f"by {staleness.changes}"
        what = target.resource or "any resource"
        super().__init__(f"reads of {what} stale {since}", times, after)
        self.target = target
        self.staleness = staleness


class WebhookFault(Fault):
    """Calls of a webhook fail."""

    def __init__(self, name: str, error: CallBreak, *, times: int | None, after: int) -> None:
        if not name:
            raise ValueError(
                "name the webhook: its own name, that of its configuration, or that of a "
                "CustomResourceDefinition for a conversion webhook"
            )
        is_code = isinstance(error, int) and 300 <= error <= 599
        if not is_code and error not in ("refused", "timeout"):
            raise ValueError(
                f"error={error!r} is unknown: use 'refused', 'timeout' or a status such as 500"
            )
        super().__init__(f"webhook {name}: {error}", times, after)
        self._name = name
        self.error = error

    def matches(self, names: Sequence[str]) -> bool:
        """Reports whether the fault is about a call of what has these names."""
        return self._name in names
