"""Whether programs outside of a control plane, such as an operator, may have something to do.

They act in the machine's time, so a time that stands still must not be moved while they do.
"""

from __future__ import annotations

from collections import Counter

from kcm.apiserver.faults.rules import OpenWatch, WatchRegister
from kcm.testing.faults.target import TESTER
from kcm.testing.history.recorder import Recorder

Activity = tuple[int, int, frozenset[OpenWatch]]


class Outside:
    """Counts what other programs write, and the changes of what they watch."""

    def __init__(self, watches: WatchRegister, recorder: Recorder) -> None:
        self._watches = watches
        self._recorder = recorder
        self._quiet: tuple[Activity, float] | None = None  # what was quiet, for how many seconds

    def watches(self) -> frozenset[OpenWatch]:
        """Returns the watches that other programs have open."""
        return frozenset(w for w in self._watches.list_open() if w.facts.agent != TESTER)

    def activity(self, changed: Counter[str]) -> Activity:
        """Returns what is the same as before if other programs did nothing, and were shown nothing
        to do. `changed` is how often objects of each kind changed, without heartbeats.
        """
        watches = self.watches()
        shown = sum(changed[kind] for kind in {w.facts.qualified_resource for w in watches})
        return self._recorder.foreign, shown, watches

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
