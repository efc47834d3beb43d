"""Whether programs outside of a control plane, such as an operator, may have something to do.

They act in the machine's time, so a time that stands still must not be moved while they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kcm.apiserver.filters.fault_rules import OpenWatch, WatchRegister
from kcm.testing.faults.target import TESTER

HEARTBEATS = frozenset({"leases.coordination.k8s.io", "events", "events.events.k8s.io"})
_READS = frozenset({"get", "list"})

Activity = tuple[int, int, frozenset[OpenWatch]]


class Outside:
    """Counts the requests of other programs, and the changes of what they watch."""

    def __init__(self, register: WatchRegister) -> None:
        self._register = register
        self._own_reads = 0  # of the test, with a client that is not the control plane's
        self._quiet: tuple[Activity, float] | None = None  # what was quiet, for how many seconds

    def watches(self) -> frozenset[OpenWatch]:
        """Returns the watches that other programs have open."""
        return frozenset(w for w in self._register.list_open() if w.facts.agent != TESTER)

    def activity(self, changed: Counter[str]) -> Activity:
        """Returns what is the same as before if other programs did nothing, and were shown nothing
        to do. `changed` is how often objects of each kind changed, without heartbeats.
        """
        watches = self.watches()
        shown = sum(changed[kind] for kind in {w.facts.qualified_resource for w in watches})
        return self._count(lambda verb: True) - self._own_reads, shown, watches

    def _count(self, is_wanted: Callable[[str], bool]) -> int:
        return sum(
            count
            for (verb, resource, agent), count in self._register.requests.copy().items()
            if agent != TESTER and resource not in HEARTBEATS and is_wanted(verb)
        )

    def look(self, look: Callable[[], bool]) -> bool:
        """Calls what looks at a condition. What is read meanwhile is taken to be its own reading,
        by any client.
        """
        before = self._count(_READS.__contains__)
        try:
            return look()
        finally:
            self._own_reads += self._count(_READS.__contains__) - before

    def note_quiet(self, activity: Activity, seconds: float) -> None:
        """Takes that nothing but `activity` had happened for so many seconds."""
        self._quiet = activity, seconds

    def is_quiet(self, activity: Activity, seconds: float) -> bool:
        """Reports whether nobody has to be waited for: nobody watches, or nothing has happened
        since other programs were quiet for so many seconds.
        """
        if not activity[2] or seconds <= 0:
            return True
        quiet, lasted = self._quiet or (None, 0.0)
        return quiet == activity and lasted >= seconds
