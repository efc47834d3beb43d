"""How the time of a shutdown is divided among pods."""

from __future__ import annotations

import pytest

from kcm.errors import ConfigurationError
from kcm.kubelet.shutdown.grace_periods import (
    ShutdownGracePeriod,
    group_by_priority,
    split_grace_period,
)
from kcm.testing import builders

CRITICAL = 2_000_000_000


@pytest.mark.parametrize(
    ("seconds", "critical", "expected"),
    [
        (0, 0, ()),
        (30, 10, (ShutdownGracePeriod(0, 20), ShutdownGracePeriod(CRITICAL, 10))),
        (30, 0, (ShutdownGracePeriod(0, 30), ShutdownGracePeriod(CRITICAL, 0))),
    ],
)
def test_critical_pods_have_the_last_part_of_the_time(
    seconds: float, critical: float, expected: tuple[ShutdownGracePeriod, ...]
) -> None:
    assert split_grace_period(seconds, critical) == expected


def test_critical_pods_cannot_have_more_than_all() -> None:
    with pytest.raises(ConfigurationError):
        split_grace_period(10, 20)


def test_pods_go_by_priority() -> None:
    priorities = {"none": None, "low": -5, "high": 1000, "critical": CRITICAL, "top": CRITICAL + 1}
    pods = [builders.pod(name, priority=priority) for name, priority in priorities.items()]
    groups = group_by_priority(split_grace_period(30, 10), pods)
    assert [[pod.name for pod in group.pods] for group in groups] == [
        ["none", "low", "high"], ["critical", "top"],
    ]  # fmt: skip
