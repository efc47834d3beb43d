"""The step that wakes a worker's event loop, with a real loop and a real pool of threads."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from types import SimpleNamespace
from typing import Any

import pytest
from celery.concurrency.solo import TaskPool as SoloPool
from celery.concurrency.thread import TaskPool
from kombu.asynchronous import Hub

from workers.waking import WakeLoopStep

PATIENCE = 30.0  # seconds until a test gives up


@pytest.fixture
def consumer() -> Iterator[Any]:
    consumer = SimpleNamespace(hub=Hub(), pool=TaskPool(1))
    consumer.pool.start()
    yield consumer
    consumer.pool.stop()
    consumer.hub.close()


@pytest.fixture
def step(consumer: Any) -> Iterator[WakeLoopStep]:
    step = WakeLoopStep(consumer)
    step.start(consumer)
    yield step
    step.stop(consumer)


def is_woken(consumer: Any, patience: float = PATIENCE) -> bool:
    """Reports whether the loop would have a turn within `patience` seconds, and takes it."""
    readable, _, _ = select.select(list(consumer.hub.readers), [], [], patience)
    for descriptor in readable:
        callback, args = consumer.hub.readers[descriptor]
        callback(*args)
    return bool(readable)


def run_task(consumer: Any, ended: Callable[[object], object] = lambda value: None) -> Future[Any]:
    """Runs a task in the pool and waits for its end, which `ended` is told of."""
    future: Future[Any] = consumer.pool.apply_async(lambda: None, callback=ended).f
    wait([future], PATIENCE)
    return future


def test_the_loop_has_a_turn_after_each_task_that_has_ended(
    consumer: Any, step: WakeLoopStep
) -> None:
    assert not is_woken(consumer, 0)
    for _ in range(2):
        run_task(consumer)
        assert is_woken(consumer)


def test_a_task_that_fails_wakes_the_loop_too(consumer: Any, step: WakeLoopStep) -> None:
    run_task(consumer, lambda value: 1 / 0)
    assert is_woken(consumer)


def test_after_a_new_connection_the_loop_is_woken_once_for_a_task(
    consumer: Any, step: WakeLoopStep
) -> None:
    step.stop(consumer)
    assert not consumer.hub.readers
    step.start(consumer)
    run_task(consumer)
    assert is_woken(consumer)
    assert not is_woken(consumer, 0)


def test_a_task_that_ends_without_a_connection_is_no_failure(
    consumer: Any, step: WakeLoopStep
) -> None:
    step.stop(consumer)
    assert run_task(consumer).exception() is None


def test_pools_that_run_tasks_in_the_loop_are_left_alone() -> None:
    consumer = SimpleNamespace(hub=Hub(), pool=SoloPool(1))
    WakeLoopStep(consumer).start(consumer)
    assert not consumer.hub.readers
    consumer.hub.close()
