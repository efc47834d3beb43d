from __future__ import annotations

from typing import Any, cast

from prometheus_client import CollectorRegistry, generate_latest

from kcm import errors
from kcm.coordination.workqueue import QueueCollector
from kcm.redisio import RedisIO
from tests.unit.coordination.workqueue.test_types import reply


class Store:
    def __init__(self, answer: list[str] | None) -> None:
        self.answer = answer

    def call(self, *_: Any, **__: Any) -> list[str]:
        if self.answer is None:
            raise errors.StoreUnavailable
        return ["OK", *self.answer]


def collect_text(answer: list[str] | None) -> str:
    registry = CollectorRegistry()
    registry.register(QueueCollector(cast("RedisIO", Store(answer))))
    return generate_latest(registry).decode()


def test_upstreams_names_are_exposed_with_the_queue_as_label() -> None:
    text = collect_text(
        reply("replicaset", adds="9", retries="3", **{"work:9": "2", "work:us": "10"})
    )
    for line in (
        'workqueue_depth{name="replicaset"} 2.0',
        'workqueue_adds_total{name="replicaset"} 9.0',
        'workqueue_retries_total{name="replicaset"} 3.0',
        'workqueue_unfinished_work_seconds{name="replicaset"} 0.2505',
        'workqueue_longest_running_processor_seconds{name="replicaset"} 0.2505',
        'workqueue_queue_duration_seconds_count{name="replicaset"} 0.0',
        'workqueue_work_duration_seconds_bucket{le="10.0",name="replicaset"} 2.0',
        'workqueue_work_duration_seconds_bucket{le="+Inf",name="replicaset"} 2.0',
        'workqueue_work_duration_seconds_sum{name="replicaset"} 1e-05',
    ):
        assert line in text.splitlines()


def test_a_scrape_without_the_store_is_empty_and_does_not_fail() -> None:
    assert collect_text(None) == ""


def test_registering_does_not_need_the_store() -> None:
    names = {family.name for family in QueueCollector(cast("RedisIO", Store(None))).describe()}
    assert "workqueue_depth" in names
