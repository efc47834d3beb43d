"""Which container's log a request is for."""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import ContainerStatus
from kcm.kubelet.server.pods import choose_logged

RUNNING: dict[str, Any] = {"running": {}}
ENDED = {"terminated": {"containerID": "process://ended"}}
BEFORE = {"terminated": {"containerID": "process://before"}}
WAITS = {"waiting": {"reason": "CrashLoopBackOff"}}


def status(state: dict[str, Any], last: dict[str, Any] | None = None) -> ContainerStatus:
    return ContainerStatus.model_validate(
        {"name": "c", "containerID": "process://now", "state": state, "lastState": last or {}}
    )


@pytest.mark.parametrize(
    ("container_status", "previous", "expected"),
    [
        (status(RUNNING), False, "now"),
        (status(RUNNING, BEFORE), True, "before"),
        (status(ENDED), False, "ended"),
        (status(ENDED, BEFORE), False, "ended"),
        (status(WAITS, BEFORE), False, "before"),
    ],
)
def test_the_log_of_a_run_is_found(
    container_status: ContainerStatus, previous: bool, expected: str
) -> None:
    assert choose_logged("p", container_status, previous=previous) == expected


@pytest.mark.parametrize(
    ("container_status", "previous", "words"),
    [
        (status(RUNNING), True, 'previous terminated container "c" in pod "p" not found'),
        (status(WAITS), False, 'container "c" in pod "p" is waiting to start: CrashLoopBackOff'),
        (status({"terminated": {}}), False, 'container "c" in pod "p" is terminated'),
        (status({}), False, 'container "c" in pod "p" is waiting to start - no logs yet'),
    ],
)
def test_where_there_is_no_log_it_is_said_why(
    container_status: ContainerStatus, previous: bool, words: str
) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        choose_logged("p", container_status, previous=previous)
    assert caught.value.message == words
