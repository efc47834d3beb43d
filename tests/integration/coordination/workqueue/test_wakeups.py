"""Tests the messages of a queue: how many there are, which keys they name, and their loss."""

from __future__ import annotations

from kcm.coordination.workqueue import Pump, Reaper, SyncResult, WorkQueue
from kcm.redisio import RedisIO
from tests.integration.coordination.workqueue.conftest import (
    Configure,
    message_keys,
    messages,
    pop_message,
)
from tests.server_clock import step


def test_each_new_key_gets_one_message_that_names_it(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("b", "a")
    queue.add("b", "c")
    assert sorted(message_keys(io)) == ["a", "b", "c"]
    assert messages(io)[0]["headers"]["argsrepr"] == f"('{message_keys(io)[0]}',)"


def test_message_ids_are_never_shared(configure: Configure, io: RedisIO) -> None:
    configure(threshold=100).add(*(f"k{i}" for i in range(50)))
    ids = {message["headers"]["id"] for message in messages(io)}
    tags = {message["properties"]["delivery_tag"] for message in messages(io)}
    assert len(ids) == len(tags) == 50


def test_a_backlog_gets_one_message_per_claim_and_says_so(
    configure: Configure, io: RedisIO
) -> None:
    queue = configure(threshold=10, claim=8)
    queue.add(*(f"k{i:03}" for i in range(42)))
    sent = messages(io)
    assert len(sent) == 10 + 4
    assert [m["headers"]["argsrepr"] for m in sent[:2]] == ["('k000 +7',)", "('k008 +7',)"]
    assert sent[-1]["headers"]["argsrepr"] == "('k041',)"


def test_working_off_a_backlog_needs_no_further_messages(configure: Configure, io: RedisIO) -> None:
    queue = configure(threshold=10, claim=8)
    queue.add(*(f"k{i:03}" for i in range(42)))
    sent, ran = len(messages(io)), []
    while (named := pop_message(io)) is not None:
        leases = queue.take(named)
        assert named in [lease.key for lease in leases]
        ran += [lease.key for lease in leases]
        queue.finish_all([(lease, SyncResult.done()) for lease in leases])
    assert len(set(ran)) == len(ran) == 42
    assert queue.stats().messages == sent


def test_no_more_messages_than_room_under_the_cap(configure: Configure, io: RedisIO) -> None:
    queue = configure(cap=3)
    queue.add(*(f"k{i}" for i in range(9)))
    assert len(messages(io)) == 3
    leases = [lease for _ in range(3) for lease in queue.take(pop_message(io))]
    assert messages(io) == []
    queue.finish(leases[0], SyncResult.done())
    assert message_keys(io) == ["k3"]


def test_a_run_that_asks_for_more_does_not_use_up_a_message(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a", "b")
    queue.take(pop_message(io))
    queue.take(answers_message=False)
    assert queue.stats().outstanding == 1


def test_doubled_messages_end_in_empty_takes(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a", "b")
    ran = []
    while (named := pop_message(io)) is not None:
        ran += [lease.key for _ in range(3) for lease in queue.take(named)]
    assert sorted(ran) == ["a", "b"]
    assert queue.stats().outstanding == 0


def test_a_lost_message_is_sent_again_after_the_stall_time(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a")
    pop_message(io)
    assert Reaper(io).once() == {}
    step(io, 2.5)
    assert Reaper(io).once() == {"replicaset": (0, 1)}
    assert message_keys(io) == ["a"]
    assert queue.stats().lost_messages == 1


def test_messages_that_nobody_consumes_are_not_repeated(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a", "b")
    for _ in range(5):
        step(io, 10)
        assert Reaper(io).once() == {}
    assert len(messages(io)) == 2


def test_a_lost_message_is_found_though_other_queues_share_the_list(
    configure: Configure, io: RedisIO
) -> None:
    lost, other = configure("replicaset"), configure("podgc")
    lost.add("a")
    pop_message(io)
    other.add("x", "y")
    step(io, 2.5)
    assert Reaper(io).once() == {"replicaset": (0, 1)}
    assert sorted(message_keys(io)) == ["a", "x", "y"]


def test_a_lost_message_is_found_while_other_keys_come_and_go(
    queue: WorkQueue, io: RedisIO
) -> None:
    queue.add("lost")
    pop_message(io)
    repaired = []
    for i in range(4):
        step(io, 1)
        queue.add(f"k{i}")
        while (named := pop_message(io)) is not None:
            for lease in queue.take(named):
                queue.finish(lease, SyncResult.done())
        repaired.append(Reaper(io).once())
    assert repaired[1] == {"replicaset": (0, 1)}
    assert queue.stats().depth == 0


def test_a_full_queue_is_not_taken_for_a_stalled_one(configure: Configure, io: RedisIO) -> None:
    queue = configure(cap=1, lease=100, renew_limit=100)
    queue.add("a", "b")
    queue.take(pop_message(io))
    step(io, 10)
    assert Reaper(io).once() == {}
    assert messages(io) == []


def test_due_keys_get_messages(queue: WorkQueue, io: RedisIO) -> None:
    queue.add_after("a", 5)
    assert messages(io) == []
    step(io, 6)
    Pump(io).once()
    assert message_keys(io) == ["a"]
