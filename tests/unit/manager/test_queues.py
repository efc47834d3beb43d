from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from kcm.coordination.presence import Member
from kcm.manager.queues import GRACE, SILENT_AFTER, ServedQueues, count_workers
from kcm.testing.clock import FakeClock

QUEUES = ("nodes", "ticks")


def worker(*queues: str, silent: float = 0.0) -> Member:
    return Member("w", "worker", queues=queues, silent=silent)


def test_each_process_that_serves_a_queue_counts() -> None:
    workers = [worker("nodes"), worker("nodes", "other"), worker("ticks", silent=SILENT_AFTER + 1)]
    assert count_workers(QUEUES, workers) == {"nodes": 2, "ticks": 0}


@pytest.mark.parametrize(
    "members", [[worker("ticks")], [worker("ticks"), worker("nodes", silent=13)]]
)
def test_a_queue_without_a_worker_is_said_once_and_that_it_has_one_again(
    members: list[Member],
) -> None:
    clock = FakeClock()
    served = ServedQueues(clock)
    with capture_logs() as logs:
        for _ in range(4):
            served.check(QUEUES, members)
            clock.step(GRACE / 2)
        served.check(QUEUES, [worker(*QUEUES)])
    assert [(line["log_level"], line["queue"]) for line in logs] == [
        ("warning", "nodes"),
        ("info", "nodes"),
    ]


def test_workers_that_start_in_time_are_no_news() -> None:
    clock = FakeClock()
    served = ServedQueues(clock)
    with capture_logs() as logs:
        served.check(QUEUES, [])
        clock.step(GRACE - 1)
        served.check(QUEUES, [worker(*QUEUES)])
        clock.step(GRACE)
        served.check(QUEUES, [worker(*QUEUES)])
    assert not logs
