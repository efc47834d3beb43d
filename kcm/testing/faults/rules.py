"""The faults that are in force, as the API server asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from kcm.apiserver.egress.breaking import CallBreak, TimedOut
from kcm.apiserver.filters.fault_rules import Outcome, RequestFacts
from kcm.apiserver.request import Staleness
from kcm.clock import Clock
from kcm.store.writes.observing import Author, Refusal
from kcm.testing.faults.fault import ApiFault, ExpiryFault, Fault, Hit, StaleFault, WebhookFault

FaultT = TypeVar("FaultT", bound=Fault)


class ActiveFaults:
    """A `kcm.apiserver.filters.fault_rules.FaultRules` of a test. Any thread may use it.

    Of several faults about one request, that which was added first strikes first. One that only
    delays lets the next one strike as well.
    """

    def __init__(
        self,
        clock: Clock,
        on_hit: Callable[[str], object] = str,
        on_refusal: Callable[[Refusal], object] = repr,
    ) -> None:
        """`on_hit` gets each hit in words, and `on_refusal` each request that fails."""
        self._on_refusal = on_refusal
        self._clock = clock
        self._on_hit = on_hit
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._log: list[Hit] = []

    # --- the test's side

    def add(self, fault: FaultT) -> FaultT:
        """Puts a fault in force, and returns it."""
        fault.bind(self._remove)
        with self._lock:
            self._faults.append(fault)
        return fault

    def _remove(self, fault: Fault) -> None:
        with self._lock:
            if fault in self._faults:
                self._faults.remove(fault)

    def clear(self) -> None:
        """Removes all faults. The log stays."""
        with self._lock:
            self._faults.clear()

    def list_active(self) -> list[Fault]:
        """Returns the faults in force, the oldest first."""
        with self._lock:
            return list(self._faults)

    def list_hits(self) -> list[Hit]:
        """Returns what was hit so far."""
        with self._lock:
            return list(self._log)

    def note(self, fault: Fault, request: object) -> None:
        """Writes a hit into the log."""
        with self._lock:
            self._note(fault, request)

    def _note(self, fault: Fault, request: object) -> None:
        self._log.append(Hit(self._clock.now(), str(fault), str(request)))
        self._on_hit(f"{fault}: {request}")
        if fault.used_up and fault in self._faults:
            self._faults.remove(fault)

    # --- the server's side

    @property
    def active(self) -> bool:
        return bool(self._faults)

    def find_outcome(self, facts: RequestFacts) -> Outcome | None:
        latency, struck = 0.0, False
        with self._lock:
            for fault in self._of_kind(ApiFault):
                if not fault.matches(facts):
                    fault.miss(f"{facts.verb} by {facts.agent or facts.user}")
                    continue
                if not fault.strike():
                    continue
                self._note(fault, facts)
                outcome, struck = fault.outcome(facts), True
                latency += outcome.latency
                if outcome.end is not None:
                    self._on_refusal(_refusal_of(facts, outcome.end, fault))
                    return Outcome(latency, outcome.end)
            if facts.verb == "list":
                for expiry in self._of_kind(ExpiryFault):
                    expiry.hits_watch(facts)
        return Outcome(latency) if struck else None

    def find_expiry(self, facts: RequestFacts) -> int | None:
        with self._lock:
            for fault in self._of_kind(ExpiryFault):
                if fault.hits_watch(facts):
                    self._note(fault, facts)
                    return fault.version + 1
        return None

    def find_staleness(self, facts: RequestFacts) -> Staleness | None:
        with self._lock:
            for fault in self._of_kind(StaleFault):
                if fault.target.matches(facts) and fault.strike():
                    self._note(fault, facts)
                    return fault.staleness
        return None

    def find_break(self, names: Sequence[str]) -> CallBreak | TimedOut | None:
        call = " of ".join(names)
        with self._lock:
            for fault in self._of_kind(WebhookFault):
                if not fault.matches(names):
                    fault.miss(f"a call of {call}")
                elif fault.strike():
                    self._note(fault, f"call of {call}")
                    frozen = getattr(self._clock, "frozen", False)  # a PlaneClock that stands
                    return "timed-out" if frozen and fault.error == "timeout" else fault.error
        return None

    def _of_kind(self, kind: type[FaultT]) -> list[FaultT]:
        return [fault for fault in self._faults if isinstance(fault, kind)]


def _refusal_of(facts: RequestFacts, end: object, fault: Fault) -> Refusal:
    return Refusal(
        Author("user", facts.user, facts.agent, facts.verb, facts.subresource),
        facts.qualified_resource,
        "" if facts.resource == "namespaces" else facts.namespace,
        facts.name,
        f"{end} (by the fault: {fault})",
    )
