"""`cp.faults`: what a test has happen to requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

from kcm.api.scheme import BUILT_IN, Kinds
from kcm.apiserver.egress.breaking import CallBreak
from kcm.apiserver.filters.fault_rules import Ending, WatchRegister
from kcm.apiserver.filters.faults import ServerFaults
from kcm.apiserver.request import Staleness
from kcm.clock import Clock
from kcm.store.writes.observing import Refusal
from kcm.testing.faults.answers import ErrorCode
from kcm.testing.faults.fault import (
    ApiFault,
    ExpiryFault,
    Fault,
    Hit,
    StaleFault,
    WebhookFault,
)
from kcm.testing.faults.rules import ActiveFaults
from kcm.testing.faults.target import Target, Verb


class Faults:
    """The faults of one control plane. Any thread may use it.

    Guarantees: a fault hits requests that were authenticated and authorized, and nothing of a
    request that fails is carried out. What hits a request is in the `log`. The control plane's own
    controllers, scheduler and nodes do not use the REST API, except for writes of controllers that
    a webhook or an admission policy is about.
    """

    def __init__(
        self,
        clock: Clock,
        newest_version: Callable[[], int],
        on_hit: Callable[[str], object] = str,
        on_refusal: Callable[[Refusal], object] = repr,
        kinds: Kinds = BUILT_IN,
    ) -> None:
        """`newest_version` returns the store's resourceVersion, `kinds` are the store's; see
        `ActiveFaults`.
        """
        self._target = partial(Target, kinds=kinds)
        self._rules = ActiveFaults(clock, on_hit, on_refusal)
        self._register = WatchRegister()
        self._newest_version = newest_version

    @property
    def server(self) -> ServerFaults:
        """What the API server takes."""
        return ServerFaults(self._rules, self._register)

    def api(
        self,
        *,
        verb: Verb | None = None,
        resource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        for_: str | None = None,
        error: ErrorCode | Ending | None = None,
        latency: float = 0.0,
        retry_after: int = 1,
        times: int | None = None,
        after: int = 0,
        must_hit: bool = True,
    ) -> Fault:
        """Makes requests fail, or delays their responses. Raises ValueError.

        `error` is the code of the answer; "timeout" holds the request until the client leaves or
        the request's timeout is over, and answers with 504; "cut" closes the connection without an
        answer. `latency` is in real seconds, `retry_after` the seconds that 429 and 503 ask for.
        The first `after` requests pass, and then `times` are hit, or all. `for_` is the beginning
        of a user agent, the name of a user, or that of a service account. Used with `with`, the
        block fails if nothing was hit, unless `must_hit` says otherwise; so with all faults.
        """
        target = self._target(verb, resource, namespace, name, for_)
        fault = ApiFault(
            target, error, latency=latency, retry_after=retry_after, times=times, after=after
        )
        return self._add(fault, must_hit)

    def _add(self, fault: Fault, must_hit: bool) -> Fault:
        fault.must_hit = must_hit
        return self._rules.add(fault)

    def watches(
        self,
        *,
        resource: str | None = None,
        namespace: str | None = None,
        for_: str | None = None,
        how: Literal["cut", "expired"] = "cut",
        must_hit: bool = True,
    ) -> Fault:
        """Ends the open watches now. Raises ValueError.

        "cut" closes their connections. "expired" ends them with an ERROR event of code 410, and so
        do the next watches from a resourceVersion of before, once for each client, unless it has
        listed the kind since.
        """
        target = self._target("watch", resource, namespace, None, for_)
        if how == "cut":
            fault = Fault(f"watches of {resource or 'any resource'} cut")
        elif how == "expired":
            later = self._target(None, resource, namespace, None, for_)
            fault = self._rules.add(ExpiryFault(later, self._newest_version()))
        else:
            raise ValueError(f"how={how!r} is unknown: use 'cut' or 'expired'")
        for watch in self._register.list_open():
            if target.matches(watch.facts) and fault.strike():
                self._rules.note(fault, watch.facts)
                (watch.cut if how == "cut" else watch.expire)()
        fault.must_hit = must_hit
        return fault

    def stale_lists(
        self,
        *,
        resource: str | None = None,
        by: int | None = None,
        since: int | str | None = None,
        for_: str | None = None,
        times: int | None = None,
        after: int = 0,
        must_hit: bool = True,
    ) -> Fault:
        """Makes reads at resourceVersion 0 return an older state. Raises ValueError.

        With `by`, it is that of so many changes of the kind before the newest; with `since`, that
        of a resourceVersion. Other reads are not hit: a server may answer only these from the past.
        """
        if (by is None) == (since is None):
            raise ValueError("say how old the state is: either by=CHANGES or since=RESOURCEVERSION")
        if by is not None and by < 1:
            raise ValueError(f"by={by} is not in the past: use 1 or more")
        if since is not None and not (str(since).isdigit() and int(since)):
            raise ValueError(f"since={since!r} is no resourceVersion: use metadata.resourceVersion")
        target = self._target(None, resource, None, None, for_)
        staleness = Staleness(by or 0, int(since or 0))
        return self._add(StaleFault(target, staleness, times=times, after=after), must_hit)

    def webhook(
        self,
        name: str,
        *,
        error: CallBreak = "refused",
        times: int | None = None,
        after: int = 0,
        must_hit: bool = True,
    ) -> Fault:
        """Makes calls of a webhook fail. Raises ValueError.

        `name` is that of the webhook, of its configuration, or of the CustomResourceDefinition of a
        conversion webhook. "refused" is a connection that is refused; "timeout" lasts as long as
        the webhook's own timeout, in real time, and no time if the clock stands still; a number is
        the status of the answer.
        """
        return self._add(WebhookFault(name, error, times=times, after=after), must_hit)

    def clear(self) -> None:
        """Removes all faults. The log stays."""
        self._rules.clear()

    @property
    def active(self) -> list[Fault]:
        """The faults in force, the oldest first."""
        return self._rules.list_active()

    @property
    def log(self) -> list[Hit]:
        """What was hit, in order of time."""
        return self._rules.list_hits()

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.active)

    def __repr__(self) -> str:
        return f"<Faults {self.active}>"
