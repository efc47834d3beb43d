"""Tests that a dispatch takes keys for runs that wait for them, in place of messages."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.coordination import FencedLease
from kcm.coordination.workqueue import Addition, SyncResult, WorkQueue, dispatch
from kcm.redisio import Fence, RedisIO
from tests.integration.coordination.workqueue.conftest import Configure, message_keys


@pytest.fixture
def fence(io: RedisIO) -> Fence:
    lease = FencedLease(io, "dispatch:pods", "one")
    assert lease.try_acquire()
    return lease.fence


def keys(count: int) -> tuple[str, ...]:
    return tuple(f"k{i:02}" for i in range(count))


def test_a_waiting_run_gets_the_key_and_nobody_a_message(
    queue: WorkQueue, io: RedisIO, fence: Fence
) -> None:
    queue.add("before")
    (held,) = queue.take()
    queue.finish(held, SyncResult.done())
    sent = queue.stats().messages
    done = dispatch(io, fence, {}, [Addition(queue.name, ("a",))], waiting=[queue.name])
    (lease,) = done.taken[queue.name]
    assert (done.added, lease.key, lease.failures) == (1, "a", 0)
    assert int(lease.token) > int(held.token)
    assert queue.stats().messages == sent
    assert not queue.finish(lease, SyncResult.done()).lost


def test_the_other_keys_get_messages(queue: WorkQueue, io: RedisIO, fence: Fence) -> None:
    done = dispatch(io, fence, {}, [Addition(queue.name, keys(3))], waiting=[queue.name])
    assert [lease.key for lease in done.taken[queue.name]] == ["k00"]
    assert sorted(message_keys(io)) == ["k01", "k02"]


def test_of_a_backlog_the_run_takes_several_keys(
    configure: Configure, io: RedisIO, fence: Fence
) -> None:
    queue = configure(threshold=10, claim=8)
    done = dispatch(io, fence, {}, [Addition(queue.name, keys(20))], waiting=[queue.name])
    assert [lease.key for lease in done.taken[queue.name]] == list(keys(8))


def test_each_queue_gets_its_own_keys(configure: Configure, io: RedisIO, fence: Fence) -> None:
    names = [configure(name).name for name in ("replicaset", "job", "deployment")]
    additions = [Addition(name, (f"{name}-key",)) for name in names]
    done = dispatch(io, fence, {}, additions, waiting=names[1:])
    taken = {name: [lease.key for lease in leases] for name, leases in done.taken.items()}
    assert taken == {"job": ["job-key"], "deployment": ["deployment-key"]}
    assert message_keys(io) == ["replicaset-key"]


def test_a_key_that_is_being_synced_is_not_taken_again(
    queue: WorkQueue, io: RedisIO, fence: Fence
) -> None:
    queue.add("a")
    (held,) = queue.take()
    done = dispatch(io, fence, {}, [Addition(queue.name, ("a",))], waiting=[queue.name])
    assert done.taken == {queue.name: []}
    queue.finish(held, SyncResult.done())
    assert [lease.key for lease in queue.take()] == ["a"]


def test_no_key_is_taken_beyond_the_cap_or_while_the_queue_drains(
    configure: Configure, io: RedisIO, fence: Fence
) -> None:
    full, draining = configure("replicaset", cap=1), configure("job")
    full.add("held")
    full.take()
    draining.shut_down()
    names = [full.name, draining.name]
    done = dispatch(io, fence, {}, [Addition(name, ("a",)) for name in names], waiting=names)
    assert done.taken == {full.name: [], draining.name: []}


def test_keys_of_a_long_dispatch_are_taken_by_its_last_call(
    queue: WorkQueue, io: RedisIO, fence: Fence
) -> None:
    many = tuple(f"k{i:04}" for i in range(1500))
    done = dispatch(io, fence, {}, [Addition(queue.name, many)], waiting=[queue.name])
    assert done.added == 1500
    assert [lease.key for lease in done.taken[queue.name]] == list(many[:8])


def test_a_dispatcher_that_lost_its_lease_takes_nothing(queue: WorkQueue, io: RedisIO) -> None:
    stale = Fence("no-such-lease", "token", "1")
    with pytest.raises(errors.Fenced):
        dispatch(io, stale, {}, [Addition(queue.name, ("a",))], waiting=[queue.name])
    assert queue.stats().running == 0


def test_a_queue_with_a_damaged_record_takes_no_keys_for_others(
    configure: Configure, io: RedisIO, fence: Fence
) -> None:
    good, broken = configure("replicaset"), configure("job")
    io.execute("SET", io.keys.queue(broken.name, "waiting"), "not a set")
    additions = [Addition(broken.name, ("a",)), Addition(good.name, ("a",))]
    with pytest.raises(errors.KcmError):
        dispatch(io, fence, {}, additions, waiting=[good.name])
    assert good.stats().running == 0
    assert message_keys(io) == ["a"]
