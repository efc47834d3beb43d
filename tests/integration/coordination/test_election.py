"""Two electors with real threads and real time, over one Lease in memory."""

from __future__ import annotations

import threading
import time

from kcm.coordination import LeaderCallbacks, LeaderElectionConfig, LeaderElector
from tests.unit.coordination.memory_lock import MemoryLock, Shared

PERIODS = {"lease_duration": 1.0, "renew_deadline": 0.5, "retry_period": 0.05}


class Instance:
    """A controller manager that would work while it leads."""

    def __init__(self, shared: Shared, identity: str) -> None:
        self.leading = threading.Event()
        self.over: threading.Event | None = None
        self.lock = MemoryLock(shared, identity)
        self.stop = threading.Event()
        elector = LeaderElector(
            LeaderElectionConfig(identity=identity, **PERIODS),
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
    first = Instance(shared, "a_1")
    assert first.leading.wait(5)
    second = Instance(shared, "b_2")
    time.sleep(0.2)
    assert not second.leading.is_set()
    began = time.monotonic()
    first.end()
    assert first.over is not None
    assert first.over.is_set()
    assert second.leading.wait(5)
    assert time.monotonic() - began < 0.9
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
