"""Which thread does a pod's work: that of a message, or after a moment one of the kubelet's."""

from __future__ import annotations

import threading

from kcm.kubelet.pod_workers.work_queue import DelayQueue, WorkThreads
from kcm.testing.clock import FakeClock
from kcm.testing.waiting import until


def test_what_is_due_is_taken_once() -> None:
    clock = FakeClock()
    queue = DelayQueue(clock)
    queue.enqueue("a", 5)
    queue.enqueue("b", 10)
    queue.enqueue("b", 1)
    clock.step(4)
    assert queue.get_work() == ["b"]
    clock.step(1)
    assert queue.get_work() == ["a"]
    assert queue.get_work() == []


def test_a_pod_is_run_once_by_whoever_comes_first() -> None:
    ran: list[str] = []
    threads = WorkThreads(ran.append, FakeClock(), notify_work=lambda _: None)
    assert not threads.run("a")
    threads.add("a")
    threads.add("a")
    assert threads.run("a")
    assert not threads.run("a")
    assert ran == ["a"]


def test_what_is_added_while_it_runs_runs_again_and_never_beside() -> None:
    threads: WorkThreads
    answers: list[bool] = []

    def run(uid: str) -> None:
        if not answers:
            threads.add(uid)
            answers.append(threads.run(uid))

    threads = WorkThreads(run, FakeClock(), notify_work=lambda _: None)
    threads.add("a")
    assert threads.run("a")
    assert answers == [False]
    assert threads.run("a")


def test_a_pod_that_nobody_takes_is_run_by_the_kubelet_after_a_moment() -> None:
    clock = FakeClock()
    ran: list[tuple[str, float]] = []
    woken: list[str] = []
    threads = WorkThreads(
        lambda uid: ran.append((uid, clock.monotonic())), clock, notify_work=woken.append
    )
    stop = threading.Event()
    own = threading.Thread(target=threads.run_overdue, args=(stop,))
    own.start()
    threads.add("a")
    clock.step(0.1)
    threads.add("b")
    clock.step(0.1)
    until(lambda: len(ran) == 1, "nobody ran the first pod")
    clock.step(0.1)
    until(lambda: len(ran) == 2, "nobody ran the second pod")
    assert [uid for uid, _ in ran] == woken == ["a", "b"]
    assert [round(at, 1) for _, at in ran] == [0.2, 0.3]
    stop.set()
    own.join(5)
