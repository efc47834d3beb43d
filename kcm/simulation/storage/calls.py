"""Calls to the simulated CSI driver, which take time, fail and hang as scripts say.

A call that is not answered in time counts as failed, as the sidecars of a real driver see it, while
the driver goes on with its work. A call that failed is made again, after a second at first, then
after twice as long each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from kcm.reconcile.cloudprovider.sim.records import Script
from kcm.reconcile.cloudprovider.sim.scriptbook import ScriptBook

Verb = Literal["create", "delete", "attach", "detach"]
VERBS: tuple[Verb, ...] = get_args(Verb)
CALL_TIMEOUT = 15.0  # seconds, external-attacher's --timeout
FIRST_RETRY, LONGEST_RETRY = 1.0, 300.0  # seconds, external-attacher's --retry-interval-*
TIMED_OUT = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"

CallKey = tuple[Verb, str]  # what is done with which object


@dataclass(slots=True)
class _Call:
    """A call that was begun and has not succeeded."""

    about: tuple[str, ...]
    done_at: float  # when the driver ends its work
    error: str  # with which the work ends, "" if it succeeds
    answer_by: float  # when the sidecar stops waiting
    retries: int = 0
    rests: bool = False  # whether the sidecar waits before it calls again


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended. `error` is the message of a gRPC status, "" if it succeeded."""

    key: CallKey
    error: str


class Calls:
    """The calls of one driver. Times are seconds since 1970. Not thread-safe."""

    def __init__(
        self,
        scripts: ScriptBook,
        seconds: float,
        set_timer: Callable[[CallKey, float], None],
        refuse: Callable[[CallKey], str],
    ) -> None:
        """`seconds` is how long a call takes without a script.

        `refuse` returns why a call fails nevertheless, "" if it succeeds.
        """
        self._scripts = scripts
        self._seconds = seconds
        self._set_timer = set_timer
        self._refuse = refuse
        self._calls: dict[CallKey, _Call] = {}

    def __contains__(self, key: CallKey) -> bool:
        return key in self._calls

    def begin(self, key: CallKey, about: tuple[str, ...], now: float) -> None:
        """Begins a call, unless it goes on already. Raises StoreUnavailable."""
        if key not in self._calls:
            self._calls[key] = self._make(key, about, now)
            self._wait(key)

    def cancel(self, key: CallKey) -> None:
        """Forgets a call whose result is no longer wanted."""
        if self._calls.pop(key, None) is not None:
            self._set_timer(key, float("inf"))

    def keep(self, wanted: set[CallKey]) -> None:
        """Forgets all calls but these."""
        for key in [key for key in self._calls if key not in wanted]:
            self.cancel(key)

    def advance(self, key: CallKey, now: float) -> CallEnd | None:
        """Returns how the call ended, None if it goes on. Raises StoreUnavailable.

        One that failed begins again when its time has come, until it is cancelled.
        """
        call = self._calls.get(key)
        if call is None:
            return None
        if call.rests:
            again = self._make(key, call.about, now)
            again.retries = call.retries
            if call.done_at < again.done_at:  # the driver has worked on it all the time
                again.done_at, again.error = max(call.done_at, now), call.error
            self._calls[key] = call = again
        if now >= call.done_at:
            call.error = call.error or self._refuse(key)
            if not call.error:
                self.cancel(key)
                return CallEnd(key, "")
        if now >= min(call.done_at, call.answer_by):
            return self._fail(key, call, now)
        self._wait(key)
        return None

    def _make(self, key: CallKey, about: tuple[str, ...], now: float) -> _Call:
        script = self._scripts.take(key[0], *about) or Script(delay=self._seconds)
        error = f"rpc error: code = Internal desc = {script.error}" if script.error else ""
        return _Call(about, now + script.delay, error, now + CALL_TIMEOUT)

    def _fail(self, key: CallKey, call: _Call, now: float) -> CallEnd:
        ended = now >= call.done_at
        call.rests = True
        if ended:
            call.done_at = float("inf")  # the next call begins from the start
        pause = min(FIRST_RETRY * 2.0 ** min(call.retries, 20), LONGEST_RETRY)
        call.retries += 1
        self._set_timer(key, now + pause)
        return CallEnd(key, call.error if ended else TIMED_OUT)

    def _wait(self, key: CallKey) -> None:
        call = self._calls[key]
        self._set_timer(key, min(call.done_at, call.answer_by))
