"""Tests expiry and renewal of leases, delayed keys, and the loops of reaper and pump."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from kcm.coordination.workqueue import Pump, Reaper, Renewer, SyncResult, WorkQueue, renew
from kcm.coordination.workqueue.additions import Addition, add_keys
from kcm.loops import NEVER, ThreadHost
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.testing.waiting import until
from tests.integration.coordination.workqueue.conftest import (
    Configure,
    message_keys,
    new_epoch,
    state,
)
from tests.server_clock import step

HOUR = 3600.0


def test_a_key_whose_worker_is_silent_goes_to_another(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a")
    (lease,) = queue.take("a")
    step(io, 3.9)
    assert Reaper(io).once() == {}
    step(io, 0.2)
    assert Reaper(io).once() == {"replicaset": (1, 0)}
    (again,) = queue.take("a")
    assert int(again.token) > int(lease.token)
    assert queue.finish(lease, SyncResult.done()).lost
    assert queue.stats().running == 1
    assert queue.stats().reaped == 1


def test_a_reaped_key_that_was_added_meanwhile_waits_once(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a")
    queue.take()
    queue.add("a")
    step(io, 5)
    Reaper(io).once()
    queue.finish(queue.take()[0], SyncResult.done())
    assert queue.take() == []


def test_renewal_keeps_a_key_up_to_the_limit_and_no_longer(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a")
    (lease,) = queue.take()
    answers = []
    for _ in range(9):
        step(io, 3)
        answers += renew(io, [lease])
        assert Reaper(io).once() == {}
    assert answers == ["OK"] * 8 + ["LIMIT"]
    step(io, 2)
    assert renew(io, [lease]) == ["LIMIT"]
    assert Reaper(io).once() == {}
    step(io, 1)
    assert Reaper(io).once() == {"replicaset": (1, 0)}
    assert renew(io, [lease]) == ["LOST"]


def test_one_call_renews_keys_of_several_queues(configure: Configure, io: RedisIO) -> None:
    first, second = configure("replicaset"), configure("podgc")
    first.add("a")
    second.add("a")
    leases = first.take() + second.take()
    first.finish(leases[0], SyncResult.done())
    assert renew(io, leases) == ["LOST", "OK"]


def test_leases_from_before_a_restart_are_not_renewed_and_get_reaped(
    queue: WorkQueue, io: RedisIO
) -> None:
    queue.add("a")
    (lease,) = queue.take()
    new_epoch(io)
    assert renew(io, [lease]) == ["LOST"]
    step(io, 5)
    assert Reaper(io).once() == {"replicaset": (1, 0)}


LOST = "the lease of a key in flight is lost"


def test_the_renewer_notices_a_lost_key(queue: WorkQueue, io: RedisIO) -> None:
    renewer = Renewer(io)
    queue.add("a")
    (lease,) = queue.take()
    renewer.hold(lease)
    with capture_logs() as lines:
        renewer.once()
        step(io, 5)
        assert lines == []
        Reaper(io).once()
        renewer.once()
        renewer.once()
    assert [line["event"] for line in lines if line["event"] == LOST] == [LOST]


def test_a_key_that_is_finished_while_it_is_renewed_is_not_lost(
    queue: WorkQueue, io: RedisIO
) -> None:
    renewer = Renewer(io)
    queue.add("a")
    (lease,) = queue.take()
    renewer.hold(lease)
    renewer.expect_end(lease)
    queue.finish(lease, SyncResult.done())
    with capture_logs() as lines:
        renewer.once()
    assert lines == []


def test_the_pump_moves_only_what_is_due_and_says_when_the_next_is(
    queue: WorkQueue, io: RedisIO
) -> None:
    queue.add_after("a", 5)
    queue.add_after("b", 50)
    assert Pump(io).once().due_in == pytest.approx(5, abs=0.5)
    step(io, 6)
    assert Pump(io).once().due_in == pytest.approx(44, abs=0.5)
    assert [lease.key for lease in queue.take()] == ["a"]
    step(io, 50)
    assert Pump(io).once().due_in == NEVER


def test_keys_that_fall_due_together_go_by_their_time(queue: WorkQueue, io: RedisIO) -> None:
    """Upstream's delaying queue is a heap sorted by time; the keys' names do not matter."""
    for number, key in enumerate("zyxabc"):
        queue.add_after(key, 1 + number / 100)
    step(io, 5)
    Pump(io).once()
    assert [lease.key for _ in "zyxabc" for lease in queue.take()] == list("zyxabc")


def test_keys_of_one_call_keep_their_order(queue: WorkQueue, io: RedisIO) -> None:
    add_keys(io, [Addition(queue.name, tuple("zyxabc"))])
    assert [lease.key for _ in "zyxabc" for lease in queue.take()] == list("zyxabc")


def test_a_due_key_that_runs_is_marked_to_run_again(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a")
    (lease,) = queue.take()
    queue.add_after("a", 1)
    step(io, 2)
    Pump(io).once()
    assert queue.stats().depth == 0
    queue.finish(lease, SyncResult.done())
    assert queue.stats().depth == 1


def test_an_earlier_due_time_wakes_the_pump_and_a_later_one_does_not(
    queue: WorkQueue, io: RedisIO
) -> None:
    queue.add_after("a", 60)
    queue.add_after("b", 30)
    assert io.execute("LLEN", io.keys.pump_wake()) == 1
    io.execute("DEL", io.keys.pump_wake())
    queue.add_after("c", 45)
    assert io.execute("LLEN", io.keys.pump_wake()) == 0


def test_a_second_pass_of_pump_and_reaper_changes_nothing(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a", "b")
    queue.take()
    queue.add_after("c", 1)
    step(io, 10)
    Pump(io).once()
    Reaper(io).once()
    before = state(io)
    Pump(io).once()
    Reaper(io).once()
    assert state(io) == before


def blocked_clients(io: RedisIO) -> int:
    """Returns how many connections wait in a blocking call."""
    return int(io.info("clients")["blocked_clients"])


@pytest.fixture
def patient(settings: Settings) -> Iterator[RedisIO]:
    """Gives a connection whose blocking calls may last longer than any test."""
    io = RedisIO(settings.model_copy(update={"socket_timeout": 2 * HOUR}))
    yield io
    io.close()


def test_the_running_pump_wakes_when_a_key_is_added_and_when_it_is_due(
    queue: WorkQueue, io: RedisIO, patient: RedisIO
) -> None:
    """Each sleep would last an hour: the key moves only if the pump is woken or knows the due
    time.
    """
    host = ThreadHost(patience=HOUR)
    host.run(Pump(patient), Reaper(io))
    try:
        until(lambda: blocked_clients(io) == 1, "the pump's sleep: nothing is delayed")
        queue.add_after("a", 0.1)
        until(lambda: message_keys(io), "the key's move to those that wait")
        assert [lease.key for lease in queue.take("a")] == ["a"]
    finally:
        host.ask_to_stop()
        queue.add_after("b", HOUR)  # ends the pump's sleep
        host.stop()
    assert not any(thread.is_alive() for thread in host.threads)
