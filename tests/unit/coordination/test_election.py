"""Tests client-go's rules by the cases of its leaderelection_test.go, and a few more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.coordination import (
    LeaderCallbacks,
    LeaderElectionConfig,
    LeaderElectionRecord,
    LeaderElector,
    default_identity,
)
from kcm.testing.clock import FakeClock
from tests.unit.coordination.memory_lock import MemoryLock, Shared

ME, OTHER = "host-a_1", "host-b_2"
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


def record(holder: str, transitions: int = 0, seconds: int = 15) -> LeaderElectionRecord:
    return LeaderElectionRecord(holder, seconds, LONG_AGO, LONG_AGO, transitions)


class Candidate:
    """An elector with its lock, its clock and a record of its callbacks."""

    def __init__(self, shared: Shared, clock: FakeClock, identity: str = ME, **config: Any) -> None:
        self.shared = shared
        self.clock = clock
        self.lock = MemoryLock(shared, identity)
        self.told: list[str] = []
        self.over: threading.Event | None = None
        self.started = threading.Event()
        self.elector = LeaderElector(
            LeaderElectionConfig(identity=identity, **config),
            self.lock,
            LeaderCallbacks(self._started, self._stopped, self._new_leader),
            clock=clock,
        )

    def _started(self, over: threading.Event) -> None:
        self.over = over
        self.started.set()

    def _stopped(self) -> None:
        self.told.append("stopped")

    def _new_leader(self, identity: str) -> None:
        self.told.append(f"leader {identity}")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def shared() -> Shared:
    return Shared()


class StopAfter(FakeClock):
    """A fake clock that calls each act at its time while the elector waits; the last one sets
    `stop`.
    """

    def __init__(self, *acts: tuple[float, Callable[[], None]]) -> None:
        super().__init__()
        self.acts = list(acts)

    def wait(self, event: threading.Event, timeout: float) -> bool:
        super().wait(event, timeout)
        while self.acts and self.acts[0][0] <= self.monotonic():
            self.acts.pop(0)[1]()
        return event.is_set()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lease_duration": 10.0}, "leaseDuration must be greater than renewDeadline"),
        ({"lease_duration": 9.0}, "leaseDuration must be greater than renewDeadline"),
        ({"renew_deadline": 2.4}, r"renewDeadline must be greater than retryPeriod\*JitterFactor"),
        ({"retry_period": 0.0}, "retryPeriod must be greater than zero"),
        ({"retry_period": -1.0}, "retryPeriod must be greater than zero"),
        (
            {"lease_duration": 0.9, "renew_deadline": 0.5, "retry_period": 0.1},
            "leaseDuration must be at least one second",
        ),
        (
            {"renew_deadline": 0.0, "retry_period": -1.0},
            "renewDeadline must be greater than zero",
        ),
        ({"identity": ""}, "Lock identity is empty"),
    ],
)
def test_periods_that_cannot_work_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=words):
        LeaderElectionConfig(**wrong)


def test_the_defaults_are_the_controller_managers() -> None:
    config = LeaderElectionConfig()
    assert (config.lease_duration, config.renew_deadline, config.retry_period) == (15, 10, 2)


def test_an_identity_is_host_and_uuid_and_never_the_same() -> None:
    first, second = default_identity(), default_identity()
    assert first != second
    assert first.rpartition("_")[0] == second.rpartition("_")[0] != ""


def test_a_lock_of_another_identity_is_refused(shared: Shared) -> None:
    with pytest.raises(errors.ConfigurationError, match="identity"):
        LeaderElector(
            LeaderElectionConfig(identity=ME),
            MemoryLock(shared, OTHER),
            LeaderCallbacks(lambda _: None, lambda: None),
        )


# What is stored, how long ago this candidate first saw it (None: never), then
# whether a try succeeds and the transitions afterwards.
Try = tuple[str, LeaderElectionRecord | None, float | None, bool, int]
TRIES: list[Try] = [
    ("no object", None, None, True, 0),
    ("held by another, first seen now, however old it says it is", record(OTHER), None, False, 0),
    ("held by another, seen within its duration", record(OTHER), 14.9, False, 0),
    ("held by another, unchanged for its duration", record(OTHER, 3), 15.0, True, 4),
    ("held by another with a shorter duration", record(OTHER, 0, seconds=5), 6.0, True, 1),
    ("released", record("", 2, seconds=1), None, True, 3),
    ("our own", record(ME, 7), None, True, 7),
]


@pytest.mark.parametrize("case", TRIES, ids=[case[0] for case in TRIES])
def test_one_try(clock: FakeClock, shared: Shared, case: Try) -> None:
    _, shared.record, seen, leads, transitions = case
    me = Candidate(shared, clock)
    if seen is not None:
        assert not me.elector.try_acquire_or_renew()
        clock.step(seen)
    assert me.elector.try_acquire_or_renew() is leads
    assert me.elector.is_leader is leads
    assert shared.record is not None
    assert shared.record.leader_transitions == transitions
    assert shared.record.holder_identity == (ME if leads else OTHER)


def test_a_takeover_sets_both_times_and_a_renewal_keeps_the_acquire_time(
    clock: FakeClock, shared: Shared
) -> None:
    me = Candidate(shared, clock)
    me.elector.try_acquire_or_renew()
    began = clock.now()
    clock.step(2)
    me.elector.try_acquire_or_renew()
    assert shared.record is not None
    assert shared.record.acquire_time == began
    assert shared.record.renew_time == began + timedelta(seconds=2)
    assert shared.record.lease_duration_seconds == 15


def test_a_leader_renews_without_reading(clock: FakeClock, shared: Shared) -> None:
    me = Candidate(shared, clock)
    me.elector.try_acquire_or_renew()
    shared.calls.clear()
    assert me.elector.try_acquire_or_renew()
    assert shared.calls == ["update"]


def test_a_leader_reads_again_when_the_object_changed_underneath(
    clock: FakeClock, shared: Shared
) -> None:
    me = Candidate(shared, clock)
    me.elector.try_acquire_or_renew()
    shared.version += 1  # someone touched a label
    shared.calls.clear()
    assert me.elector.try_acquire_or_renew()
    assert shared.calls == ["update", "get", "update"]


def test_a_change_of_the_record_restarts_the_wait(clock: FakeClock, shared: Shared) -> None:
    shared.record = record(OTHER)
    me = Candidate(shared, clock)
    me.elector.try_acquire_or_renew()
    clock.step(14)
    shared.record = replace(shared.record, renew_time=LONG_AGO + timedelta(seconds=1))
    assert not me.elector.try_acquire_or_renew()
    clock.step(14)
    assert not me.elector.try_acquire_or_renew()
    clock.step(1)
    assert me.elector.try_acquire_or_renew()


@pytest.mark.parametrize("leads", [False, True])
def test_a_store_that_does_not_answer_is_a_failed_try(
    clock: FakeClock, shared: Shared, leads: bool
) -> None:
    me = Candidate(shared, clock)
    if leads:
        me.elector.try_acquire_or_renew()
    me.lock.down = True
    assert not me.elector.try_acquire_or_renew()
    assert me.elector.is_leader is leads


def test_a_leader_leads_until_stopped_then_releases_and_tells(shared: Shared) -> None:
    stop = threading.Event()
    clock = StopAfter((60.0, stop.set))
    me = Candidate(shared, clock)
    me.elector.run(stop)
    assert me.started.wait(5)
    assert me.over is not None
    assert me.over.is_set()
    assert me.told[0] == f"leader {ME}"
    assert me.told[-1] == "stopped"
    assert shared.events == [f"{ME} became leader", f"{ME} stopped leading"]
    assert shared.record is not None
    assert (shared.record.holder_identity, shared.record.lease_duration_seconds) == ("", 1)


def test_without_release_on_cancel_the_lease_stays(shared: Shared) -> None:
    stop = threading.Event()
    me = Candidate(shared, StopAfter((5.0, stop.set)), release_on_cancel=False)
    me.elector.run(stop)
    assert shared.record is not None
    assert shared.record.holder_identity == ME


def test_a_candidate_that_never_led_is_told_stopped_as_upstream(shared: Shared) -> None:
    shared.record = record(OTHER)
    stop = threading.Event()
    me = Candidate(shared, StopAfter((3.0, stop.set)))
    me.elector.run(stop)
    assert me.told == [f"leader {OTHER}", "stopped"]
    assert not me.started.is_set()
    assert shared.record.holder_identity == OTHER


def test_a_leader_that_cannot_renew_stops_at_the_renew_deadline(shared: Shared) -> None:
    stop = threading.Event()
    clock = StopAfter((4.0, lambda: setattr(me.lock, "down", True)))
    me = Candidate(shared, clock)
    me.elector.run(stop)
    # The renewal at 4 s is the first to fail; the deadline runs from there.
    assert clock.monotonic() == pytest.approx(4 + 10)
    assert me.told[-1] == "stopped"
    assert not stop.is_set()


def test_a_leader_whose_work_fails_gives_the_lease_up(shared: Shared) -> None:
    failed = threading.Event()

    def fail(_: threading.Event) -> None:
        failed.set()
        raise RuntimeError

    class AfterFailure(FakeClock):
        def wait(self, event: threading.Event, timeout: float) -> bool:
            failed.wait(5)
            return super().wait(event, timeout)

    elector = LeaderElector(
        LeaderElectionConfig(identity=ME),
        MemoryLock(shared, ME),
        LeaderCallbacks(fail, lambda: None),
        clock=AfterFailure(),
    )
    elector.run(threading.Event())
    assert shared.record is not None
    assert shared.record.holder_identity == ""


def test_a_leader_that_finds_another_leader_stops_at_once(shared: Shared) -> None:
    def usurp() -> None:
        shared.record = record(OTHER, 9)
        shared.version += 1

    clock = StopAfter((4.0, usurp))
    me = Candidate(shared, clock)
    me.elector.run(threading.Event())
    assert clock.monotonic() == pytest.approx(4)
    assert me.told == [f"leader {ME}", f"leader {OTHER}", "stopped"]
    assert shared.record is not None
    assert shared.record.holder_identity == OTHER


def test_a_candidate_waits_a_jittered_retry_period_between_tries(shared: Shared) -> None:
    shared.record = record(OTHER)
    stop = threading.Event()
    waits: list[float] = []

    class Noting(FakeClock):
        def wait(self, event: threading.Event, timeout: float) -> bool:
            waits.append(timeout)
            if len(waits) == 6:
                stop.set()
            return event.is_set()

    Candidate(shared, Noting()).elector.run(stop)
    assert all(2.0 <= wait <= 2.0 * 2.2 for wait in waits)
    assert len(set(waits)) > 1


def test_health_fails_only_for_a_leader_whose_lease_is_long_over(
    clock: FakeClock, shared: Shared
) -> None:
    me = Candidate(shared, clock)
    assert me.elector.check(20) is None
    me.elector.try_acquire_or_renew()
    clock.step(35)
    assert me.elector.check(20) is None
    clock.step(1)
    assert me.elector.check(20) == (
        "failed election to renew leadership on lease kcm-controller-manager"
    )
    other = Candidate(shared, clock, OTHER)
    other.elector.try_acquire_or_renew()
    clock.step(100)
    assert other.elector.check(20) is None


def test_release_leaves_another_leaders_lease_alone(clock: FakeClock, shared: Shared) -> None:
    me = Candidate(shared, clock)
    me.elector.try_acquire_or_renew()
    shared.record = record(OTHER)
    assert me.elector.release()
    assert shared.record.holder_identity == OTHER


def test_a_release_that_fails_is_reported_and_does_not_raise(
    clock: FakeClock, shared: Shared
) -> None:
    me = Candidate(shared, clock)
    me.elector.try_acquire_or_renew()
    me.lock.down = True
    assert not me.elector.release()


def test_after_a_clean_stop_another_leads_without_waiting(clock: FakeClock, shared: Shared) -> None:
    first, second = Candidate(shared, clock), Candidate(shared, clock, OTHER)
    assert first.elector.try_acquire_or_renew()
    assert not second.elector.try_acquire_or_renew()
    first.elector.release()
    assert second.elector.try_acquire_or_renew()
    assert not first.elector.try_acquire_or_renew()
    assert first.elector.leader == OTHER
