from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.coordination.workqueue import QueueConfig


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"task": ""}, "task must not be empty"),
        ({"broker_queue": ""}, "broker_queue must not be empty"),
        ({"cap": -1}, "cap -1 must not be negative"),
        ({"claim": 0}, "claim 0 must be at least 1"),
        ({"threshold": 0}, "threshold 0 must be at least 1"),
        ({"lease": 1.9}, "lease 1.9 s must be at least twice"),
        ({"lease": float("nan")}, "lease nan s must be at least twice"),
        ({"lease": 40.0}, "renew_limit 30.0 s must be at least the lease of 40.0 s"),
        ({"renew_limit": float("inf")}, "renew_limit inf s"),
        ({"base_delay": 0.0}, "base_delay 0.0 s must be above 0"),
        ({"base_delay": 2.0, "max_delay": 1.0}, "at most max_delay 1.0 s"),
        ({"qps": 0.0}, "qps 0.0 must be greater than 0"),
        ({"burst": 0}, "burst 0 must be at least 1"),
        ({"stall": 0.0}, "stall 0.0 s must be greater than 0"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(wrong: dict[str, Any], words: str) -> None:
    good = {"task": "kcm.replicaset.sync", "broker_queue": "controllers"}
    with pytest.raises(errors.ConfigurationError, match=words):
        QueueConfig(**{**good, **wrong})


def test_the_defaults_are_upstreams_limits() -> None:
    config = QueueConfig(task="t", broker_queue="b")
    assert (config.base_delay, config.max_delay) == (0.005, 1000.0)
    assert (config.qps, config.burst) == (10.0, 100)


def test_scripts_get_milliseconds_and_the_full_list_name() -> None:
    fields = QueueConfig(task="t", broker_queue="b").fields("kcm:celery:")
    assert fields["list"] == "kcm:celery:b"
    assert fields["routing_key"] == "b"
    assert (fields["lease"], fields["base_delay"]) == (4000, 5.0)
