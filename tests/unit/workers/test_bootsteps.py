"""Tests what the boot steps know of a worker's pool."""

from __future__ import annotations

import pytest
from celery import Celery

from workers.bootsteps import count_threads, runs_in_own_process


@pytest.mark.parametrize(("pool", "threads"), [("threads", 6), ("solo", 1)])
def test_only_a_pool_of_threads_runs_several_tasks_beside_each_other(
    pool: str, threads: int
) -> None:
    worker = Celery(broker="memory://").WorkController(pool_cls=pool, concurrency=6)
    assert runs_in_own_process(worker)
    assert count_threads(worker) == threads


def test_a_pool_of_children_runs_tasks_in_other_processes() -> None:
    worker = Celery(broker="memory://").WorkController(pool_cls="prefork", concurrency=6)
    assert not runs_in_own_process(worker)
