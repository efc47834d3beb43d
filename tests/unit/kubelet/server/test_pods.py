"""Which container's log a request is for."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kcm import errors
from kcm.api.core_v1 import ContainerStatus
from kcm.kubelet.cri import Runtime
from kcm.kubelet.server.pods import NodePods, choose_logged
from kcm.testing.builders import pod

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


def test_the_log_of_any_container_that_is_reported_is_found() -> None:
    logged = pod("p")
    sides = [ContainerStatus.model_validate({"name": n, "state": RUNNING}) for n in ("init", "eph")]
    logged = logged.with_status(
        logged.status.replace(
            container_statuses=[status(RUNNING)],
            init_container_statuses=[sides[0]],
            ephemeral_container_statuses=[sides[1]],
        )
    )
    pods = NodePods(lambda: [logged], lambda uid: None, cast("Runtime", None))
    assert pods.find_logged(logged, "c", previous=False) == "now"
    with pytest.raises(errors.BadRequest, match='container "x" in pod "p" is not available'):
        pods.find_logged(logged, "x", previous=False)
    for side in ("init", "eph"):
        with pytest.raises(errors.BadRequest, match=f'previous terminated container "{side}"'):
            pods.find_logged(logged, side, previous=True)
