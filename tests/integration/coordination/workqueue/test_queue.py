"""Tests client-go's rules for adding, taking and finishing keys."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kcm import errors
from kcm.coordination.workqueue import (
    Addition,
    Pump,
    SyncResult,
    WorkQueue,
    add_keys,
    dispatch,
    read_stats,
)
from kcm.coordination.workqueue.types import KeyLease
from kcm.redisio import Fence, RedisIO
from kcm.testing.clock import FakeClock
from tests.integration.coordination.workqueue.conftest import Configure, messages, new_epoch, state
from tests.server_clock import step


def keys_of(leases: Iterable[KeyLease]) -> list[str]:
    return [lease.key for lease in leases]


def test_a_key_waits_once_however_often_it_is_added(queue: WorkQueue) -> None:
    assert queue.add("default/web") == 1
    assert queue.add("default/web", "default/web") == 0
    assert queue.stats().depth == 1
    assert queue.stats().adds == 1


def test_keys_are_taken_oldest_first_but_the_named_one_before(queue: WorkQueue) -> None:
    for key in ("a", "b", "c"):
        queue.add(key)
    assert keys_of(queue.take("c")) == ["c"]
    assert keys_of(queue.take("gone")) == ["a"]
    assert keys_of(queue.take()) == ["b"]
    assert queue.take() == []


def test_a_key_added_while_running_waits_only_when_its_run_ends(queue: WorkQueue) -> None:
    queue.add("a")
    (lease,) = queue.take()
    assert queue.add("a") == 1
    assert queue.add("a") == 0
    assert queue.take() == []
    assert not queue.finish(lease, SyncResult.done()).lost
    assert keys_of(queue.take()) == ["a"]


def test_a_finished_key_that_was_not_added_again_is_gone(queue: WorkQueue) -> None:
    queue.add("a")
    queue.finish(queue.take()[0], SyncResult.done())
    stats = queue.stats()
    assert (stats.depth, stats.running, stats.delayed, stats.failing) == (0, 0, 0, 0)


def test_tokens_grow_and_are_never_shared_between_queues(configure: Configure) -> None:
    first, second = configure("replicaset"), configure("podgc")
    tokens = []
    for queue in (first, second, first):
        queue.add("a")
        (lease,) = queue.take()
        queue.finish(lease, SyncResult.done())
        tokens.append(int(lease.token))
    assert tokens == sorted(set(tokens))


def test_a_lost_token_cannot_finish(queue: WorkQueue) -> None:
    queue.add("a")
    (lease,) = queue.take()
    queue.finish(lease, SyncResult.abandon())
    (again,) = queue.take()
    assert queue.finish(lease, SyncResult.retry()).lost
    assert queue.stats().failing == 0
    assert not queue.finish(again, SyncResult.done()).lost


def test_finishing_several_keys_refuses_only_the_lost_one(queue: WorkQueue) -> None:
    queue.add("a", "b")
    first, second = queue.take()[0], queue.take()[0]
    queue.finish(first, SyncResult.done())
    answers = queue.finish_all([(first, SyncResult.done()), (second, SyncResult.requeue_after(3))])
    assert [answer.lost for answer in answers] == [True, False]
    assert answers[1].delay == pytest.approx(3.0)


def test_retries_double_from_5_ms_up_to_1000_seconds(queue: WorkQueue, io: RedisIO) -> None:
    delays = []
    for _ in range(20):
        queue.add("a")
        finished = queue.finish(queue.take()[0], SyncResult.retry())
        delays.append(finished.delay)
        step(io, 2000)
        Pump(io).once()
    assert delays[:4] == pytest.approx([0.005, 0.010, 0.020, 0.040])
    assert delays[-1] == 1000.0
    assert queue.stats().retries == 20
    assert queue.take()[0].failures == 20


def test_done_and_requeue_forget_failures_and_abandon_keeps_them(queue: WorkQueue) -> None:
    queue.add_rate_limited("a")
    queue.add("a")
    queue.finish(queue.take()[0], SyncResult.abandon())
    (lease,) = queue.take()
    assert lease.failures == 1
    queue.finish(lease, SyncResult.requeue_after(60))
    queue.add("a")
    assert queue.take()[0].failures == 0


def test_the_bucket_lets_a_burst_pass_and_then_ten_a_second(configure: Configure) -> None:
    queue = configure(burst=3, qps=10)
    queue.add(*"abcde")
    delays = [queue.finish(queue.take()[0], SyncResult.retry()).delay for _ in range(5)]
    assert delays[:3] == pytest.approx([0.005] * 3)
    assert delays[3:] == pytest.approx([0.1, 0.2], abs=0.05)


def test_a_retried_key_that_was_added_meanwhile_runs_now_and_later_again(
    queue: WorkQueue, io: RedisIO
) -> None:
    queue.add("a")
    (lease,) = queue.take()
    queue.add("a")
    queue.finish(lease, SyncResult.retry())
    assert (queue.stats().depth, queue.stats().delayed) == (1, 1)
    queue.finish(queue.take()[0], SyncResult.done())
    step(io, 1)
    Pump(io).once()
    assert keys_of(queue.take()) == ["a"]


def test_a_delayed_key_keeps_its_earliest_due_time(queue: WorkQueue, io: RedisIO) -> None:
    queue.add_after("a", 60)
    queue.add_after("a", 10)
    queue.add_after("a", 30)
    assert Pump(io).once().due_in == pytest.approx(10, abs=1)
    queue.add_after("b", 0)
    assert queue.stats().depth == 1


def test_requeue_without_delay_waits_at_once(queue: WorkQueue) -> None:
    queue.add("a")
    queue.finish(queue.take()[0], SyncResult.requeue_after(0))
    assert (queue.stats().depth, queue.stats().delayed) == (1, 0)


def test_the_cap_holds_over_all_takers_and_frees_with_each_finish(
    configure: Configure, io: RedisIO
) -> None:
    queue = configure(cap=2)
    queue.add(*"abc")
    other = WorkQueue(io, queue.name)
    leases = queue.take() + other.take()
    assert len(leases) == 2
    assert queue.take() == []
    queue.finish(leases[0], SyncResult.done())
    assert keys_of(other.take()) == ["c"]


def test_under_backlog_a_run_claims_several_keys_each_with_its_own_token(
    configure: Configure,
) -> None:
    queue = configure(threshold=10, claim=4)
    queue.add(*(f"k{i:02}" for i in range(15)))
    first = queue.take()
    assert len({lease.token for lease in first}) == 4
    assert len(queue.take(max_keys=2)) == 2
    assert len(queue.take()) == 1


def test_a_run_costs_as_many_commands_however_many_keys_it_takes(
    configure: Configure, io: RedisIO
) -> None:
    queue = configure(threshold=1, claim=8)
    alone = commands_of_a_run(queue, io, ["a"])
    assert commands_of_a_run(queue, io, [f"key-{n}" for n in range(8)]) == alone


def commands_of_a_run(queue: WorkQueue, io: RedisIO, keys: list[str]) -> dict[str, int]:
    """Returns how often the scripts of a run of these keys call the commands that record it."""
    queue.add(*keys)
    io.execute("CONFIG", "RESETSTAT")
    leases = queue.take()
    queue.finish_all([(lease, SyncResult.done()) for lease in leases])
    assert keys_of(leases) == keys
    recording = ("hdel", "hget", "hmget", "hset", "incr", "incrby", "zadd", "zrem", "zscore")
    called = io.execute("INFO", "commandstats")
    return {name: called.get(f"cmdstat_{name}", {}).get("calls", 0) for name in recording}


def test_a_key_that_is_named_twice_in_a_call_is_finished_once(queue: WorkQueue) -> None:
    queue.add("a", "b")
    first, second = queue.take()[0], queue.take()[0]
    pairs = [(first, SyncResult.done()), (first, SyncResult.retry()), (second, SyncResult.done())]
    assert [answer.lost for answer in queue.finish_all(pairs)] == [False, True, False]
    assert (queue.stats().depth, queue.stats().delayed, queue.stats().failing) == (0, 0, 0)


def test_a_run_that_a_foreign_key_stopped_from_ending_is_still_held(
    queue: WorkQueue, io: RedisIO
) -> None:
    queue.add("a")
    (lease,) = queue.take()
    again = io.keys.queue("replicaset", "again")
    io.execute("SET", again, "another program's")
    with pytest.raises(errors.WrongTypeOfKey):
        queue.finish(lease, SyncResult.retry())
    io.execute("DEL", again)
    assert not queue.finish(lease, SyncResult.retry()).lost
    assert queue.stats().delayed == 1


def test_the_cap_counts_runs_however_many_keys_each_holds(configure: Configure) -> None:
    queue = configure(threshold=1, claim=8, cap=2)
    queue.add(*(f"k{i:02}" for i in range(30)))
    first, second = queue.take(), queue.take()
    assert (len(first), len(second)) == (8, 8)
    queue.finish_all([(lease, SyncResult.done()) for lease in first[:7]])
    assert queue.take() == []
    queue.finish(first[7], SyncResult.done())
    assert len(queue.take()) == 8


def test_one_call_marks_keys_in_several_queues(configure: Configure, io: RedisIO) -> None:
    replicasets, podgc = configure("replicaset"), configure("podgc")
    marks = [
        Addition("replicaset", ("a", "b")),
        Addition("podgc", ("c",)),
        Addition("podgc", ("d",), 60),
    ]
    assert add_keys(io, marks) == 4
    assert replicasets.stats().depth == 2
    assert (podgc.stats().depth, podgc.stats().delayed) == (1, 1)


def test_keys_added_before_the_queue_is_configured_wait_for_it(
    configure: Configure, io: RedisIO
) -> None:
    WorkQueue(io, "replicaset").add("a")
    assert messages(io) == []
    queue = configure()
    assert len(messages(io)) == 1
    assert keys_of(queue.take()) == ["a"]


def test_dispatch_marks_and_stores_its_position_only_under_its_fence(
    queue: WorkQueue, io: RedisIO
) -> None:
    io.execute("HSET", io.keys.lease("dispatch"), "token", "7")
    fence = Fence(io.keys.lease("dispatch"), "token", "7")
    assert dispatch(io, fence, {"pods": 41}, [Addition("replicaset", ("a",))]).added == 1
    assert dispatch(io, fence, {"pods": 42}, []).added == 0
    io.execute("HSET", io.keys.lease("dispatch"), "token", "8")
    before = state(io)
    with pytest.raises(errors.Fenced):
        dispatch(io, fence, {"pods": 43}, [Addition("replicaset", ("b",))])
    assert state(io) == before
    assert io.execute("HGETALL", io.keys.dispatch_position()) == {b"pods": b"42"}


def test_a_position_decreases_only_when_the_data_went_back(queue: WorkQueue, io: RedisIO) -> None:
    io.execute("HSET", io.keys.lease("dispatch"), "token", "7")
    fence = Fence(io.keys.lease("dispatch"), "token", "7")
    for version, went_back, stored in [
        (42, False, b"42"),
        (9, False, b"42"),
        (9, True, b"9"),
        (10, False, b"10"),
    ]:
        dispatch(io, fence, {"pods": version}, [], went_back=went_back)
        assert io.execute("HGET", io.keys.dispatch_position(), "pods") == stored


def test_a_large_dispatch_is_split_and_stores_its_position_at_the_end(
    queue: WorkQueue, io: RedisIO
) -> None:
    io.execute("HSET", io.keys.lease("dispatch"), "token", "7")
    fence = Fence(io.keys.lease("dispatch"), "token", "7")
    many = tuple(f"default/web-{i}" for i in range(2500))
    assert dispatch(io, fence, {"pods": 9}, [Addition(queue.name, many)]).added == 2500
    assert queue.stats().depth == 2500
    assert io.execute("HGET", io.keys.dispatch_position(), "pods") == b"9"


def test_the_fence_of_a_lease_holds_until_the_run_ends(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a")
    (lease,) = queue.take()
    assert dispatch(io, lease.fence, {}, [Addition(queue.name, ("b",))]).added == 1
    queue.forget("a", fence=lease.fence)
    queue.finish(lease, SyncResult.done())
    with pytest.raises(errors.Fenced):
        dispatch(io, lease.fence, {}, [Addition(queue.name, ("c",))])
    with pytest.raises(errors.Fenced):
        queue.forget("a", fence=lease.fence)


def test_forget_makes_the_next_delay_the_shortest(queue: WorkQueue, io: RedisIO) -> None:
    for _ in range(3):
        queue.add_rate_limited("a")
    queue.forget("a")
    queue.add("a")
    assert queue.finish(queue.take()[0], SyncResult.retry()).delay == pytest.approx(0.005)


def test_leases_from_before_a_restart_of_the_server_are_void(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a")
    (lease,) = queue.take()
    new_epoch(io)
    assert queue.finish(lease, SyncResult.done()).lost
    assert queue.stats().running == 1  # until the reaper finds it


def test_a_queue_that_is_shut_down_keeps_adds_and_refuses_takes(
    queue: WorkQueue, io: RedisIO
) -> None:
    queue.shut_down()
    queue.add("a")
    assert queue.take() == []
    assert messages(io) == []
    assert queue.stats().draining
    queue.resume()
    assert len(messages(io)) == 1
    assert keys_of(queue.take()) == ["a"]


def test_drain_waits_for_the_last_run(configure: Configure, io: RedisIO) -> None:
    configure()
    queue = WorkQueue(io, "replicaset", clock=FakeClock())
    queue.add("a")
    (lease,) = queue.take()
    assert not queue.drain(timeout=5)
    queue.finish(lease, SyncResult.done())
    assert queue.drain(timeout=0)


def test_stats_show_ages_counts_and_histograms(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a", "b")
    step(io, 2)
    (lease,) = queue.take()
    step(io, 3)
    stats = queue.stats()
    assert stats.oldest == pytest.approx(5, abs=0.5)
    assert stats.unfinished == pytest.approx(3, abs=0.5)
    assert stats.longest == pytest.approx(3, abs=0.5)
    assert stats.since_finish is None
    queue.finish(lease, SyncResult.done())
    stats = queue.stats()
    assert lease.waited == pytest.approx(2, abs=0.5)
    assert stats.queue_duration.sum_seconds == pytest.approx(2, abs=0.5)
    assert stats.work_duration.counts[9] == 1  # 1 s to 10 s
    assert stats.since_finish == pytest.approx(0, abs=0.5)


def test_read_stats_lists_every_configured_queue_by_name(configure: Configure, io: RedisIO) -> None:
    configure("replicaset")
    configure("podgc")
    assert [stats.name for stats in read_stats(io)] == ["podgc", "replicaset"]
