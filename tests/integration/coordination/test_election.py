"""Tests two electors with real threads and real time, over one Lease in memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from kcm.coordination import LeaderCallbacks, LeaderElectionConfig, LeaderElector
from kcm.testing.waiting import until
from tests.unit.coordination.memory_lock import MemoryLock, Shared

PERIODS = {"lease_duration": 1.0, "renew_deadline": 0.5, "retry_period": 0.05}
# Who waits for the end of such a lease waits for longer than any test.
LONG_LEASE = {"lease_duration": 3600.0, "renew_deadline": 1800.0, "retry_period": 0.05}


class Instance:
    """One instance of the controller manager that takes part in the election."""

    def __init__(self, shared: Shared, identity: str, periods: Mapping[str, Any] = PERIODS) -> None:
        self.leading = threading.Event()
        self.over: threading.Event | None = None
        self.lock = MemoryLock(shared, identity)
        self.stop = threading.Event()
        elector = LeaderElector(
            LeaderElectionConfig(identity=identity, **periods),
            self.lock,
            LeaderCallbacks(self._lead, self.leading.clear),
        )
        self.elector = elector
        self.thread = threading.Thread(target=elector.run, args=(self.stop,))
        self.thread.start()

    def _lead(self, over: threading.Event) -> None:
        self.over = over
        self.leading.set()

    def end(self) -> None:
        self.stop.set()
        self.thread.join(5)
        assert not self.thread.is_alive()


def test_the_second_takes_over_at_once_after_a_clean_stop() -> None:
    shared = Shared()
    first = Instance(shared, "a_1", LONG_LEASE)
    assert first.leading.wait(5)
    second = Instance(shared, "b_2", LONG_LEASE)
    until(lambda: second.lock.reads >= 3, "three tries of the second")
    assert not second.leading.is_set()
    first.end()
    assert first.over is not None
    assert first.over.is_set()
    assert second.leading.wait(5)
    second.end()
    assert shared.record is not None
    # Taking over from the released record, then releasing: one transition.
    assert shared.record.leader_transitions == 1


def test_the_second_takes_over_when_the_first_cannot_reach_the_store() -> None:
    shared = Shared()
    first = Instance(shared, "a_1")
    assert first.leading.wait(5)
    second = Instance(shared, "b_2")
    first.lock.down = True
    assert second.leading.wait(5)
    assert not first.leading.is_set()  # it gave up before the second could start
    first.end()
    second.end()
