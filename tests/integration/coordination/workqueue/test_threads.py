"""Tests that concurrent threads never hold the same key."""

from __future__ import annotations

import threading

from kcm.coordination.workqueue import QueueConfig, SyncResult, WorkQueue
from kcm.redisio import RedisIO
from tests.server_clock import step

KEYS = [f"k{i}" for i in range(8)]
ROUNDS = 300


class Workers:
    """Threads that take keys, record who holds which, and finish them."""

    def __init__(self, queue: WorkQueue) -> None:
        self.queue = queue
        self.lock = threading.Lock()
        self.holding: set[str] = set()
        self.doubled: list[str] = []
        self.runs = 0

    def work(self, number: int) -> None:
        for i in range(ROUNDS):
            self.queue.add(KEYS[(number + i) % len(KEYS)])
            for lease in self.queue.take():
                with self.lock:
                    if lease.key in self.holding:
                        self.doubled.append(lease.key)
                    self.holding.add(lease.key)
                    self.runs += 1
                self.queue.add(lease.key)
                with self.lock:
                    self.holding.discard(lease.key)
                outcome = SyncResult.done() if i % 3 else SyncResult.retry()
                assert not self.queue.finish(lease, outcome).lost


def test_two_threads_never_hold_one_key(io: RedisIO) -> None:
    queue = WorkQueue(io, "q")
    queue.configure(QueueConfig(task="t", broker_queue="b", threshold=3, claim=3))
    workers = Workers(queue)
    threads = [threading.Thread(target=workers.work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert workers.doubled == []
    assert workers.runs >= ROUNDS
    assert queue.stats().running == 0


def test_a_frozen_takers_key_is_fenced_off_once_it_is_taken_again(io: RedisIO) -> None:
    queue = WorkQueue(io, "q")
    queue.configure(QueueConfig(task="t", broker_queue="b"))
    queue.add("a")
    (frozen,) = queue.take()
    step(io, 5)
    io.call("queue_reap", 10, call_id="")
    (fresh,) = queue.take()
    assert io.execute("HGET", frozen.fence.key, frozen.fence.field).decode() == fresh.token
    assert fresh.token != frozen.token
