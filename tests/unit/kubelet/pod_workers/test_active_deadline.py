"""When a pod is past its active deadline."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.kubelet.pod_workers import active_deadline
from tests.unit.kubelet.views import NOW, pod


@pytest.mark.parametrize(
    ("seconds", "started", "after", "expected"),
    [
        (None, True, 10_000, False),
        (60, False, 10_000, False),
        (60, True, 59, False),
        (60, True, 60, True),
    ],
)
def test_a_pod_may_run_only_so_long(
    seconds: int | None, started: bool, after: int, expected: bool
) -> None:
    limited = pod(active_deadline_seconds=seconds)
    began = NOW if started else None
    assert active_deadline.is_past(limited, began, NOW + timedelta(seconds=after)) is expected
