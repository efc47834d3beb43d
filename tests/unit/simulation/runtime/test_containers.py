"""The state of a simulated container at a time."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.apimachinery.durations import FOREVER
from kcm.kubelet.kuberuntime.labels import hash_of
from kcm.simulation.runtime.containers import Attempt, build_view
from kcm.simulation.scripting.behaviour import Behaviour
from tests.unit.kubelet.views import container, pod

NOW = 1000.0
SPEC = container("main")


def behaviour(outcome: str = "run", run_for: float = FOREVER, **more: Any) -> Behaviour:
    values: dict[str, Any] = {"start_after": 0.0, "ready_after": 3.0, "stop_after": 1.0, **more}
    return Behaviour(outcome, run_for=run_for, **values)


def start_attempt(does: Behaviour) -> Attempt:
    attempt = Attempt.of(SPEC, 0, NOW - 1)
    attempt.start(NOW, does)
    return attempt


def test_time_makes_its_state() -> None:
    attempt = Attempt.of(SPEC, 0, NOW - 1)
    assert attempt.state(NOW) == "CREATED"
    attempt.start(NOW, behaviour("fail", 5.0, exit_code=3, reason="Error"))
    assert [attempt.state(at) for at in (NOW, NOW + 4.9, NOW + 5)] == [
        "RUNNING",
        "RUNNING",
        "EXITED",
    ]
    assert [attempt.is_ready(at) for at in (NOW + 2, NOW + 3, NOW + 5)] == [False, True, False]


@pytest.mark.parametrize(
    ("does", "grace", "expected"),
    [
        (behaviour(), 30, (1.0, 0, "Completed")),
        (behaviour(stop_after=FOREVER), 30, (30.0, 137, "Error")),
        (behaviour(stop_after=5.0), 2, (2.0, 137, "Error")),
        (behaviour("fail", 0.5, exit_code=3, reason="Error"), 30, (0.5, 3, "Error")),
        (behaviour("unhealthy", 9.0, exit_code=137, reason="Error"), 30, (1.0, 137, "Error")),
    ],
)
def test_a_container_that_is_stopped_ends_in_time_or_is_killed(
    does: Behaviour, grace: float, expected: tuple[float, int, str]
) -> None:
    attempt = start_attempt(does)
    attempt.stop(NOW, does, grace)
    assert (attempt.ends - NOW, attempt.code, attempt.reason) == expected


def test_a_second_stop_can_only_shorten_the_wait() -> None:
    does = behaviour(stop_after=FOREVER)
    attempt = start_attempt(does)
    attempt.stop(NOW, does, 300)
    attempt.stop(NOW + 1, does, 400)
    assert attempt.ends == NOW + 300
    attempt.stop(NOW + 2, does, 2)
    assert attempt.ends == NOW + 4


def test_an_unhealthy_container_runs_until_somebody_ends_it() -> None:
    attempt = start_attempt(behaviour("unhealthy", 5.0))
    assert (attempt.sick, attempt.ends) == (NOW + 5, FOREVER)


def test_the_kubelet_sees_times_to_the_second_and_an_end_only_once_it_is_there() -> None:
    attempt = start_attempt(
        behaviour("oom", 5.5, exit_code=137, reason="OOMKilled", message="too much")
    )
    seen = build_view(pod(), attempt, NOW + 5)
    assert (seen.state, seen.exit_code, seen.reason, seen.finished_at) == ("RUNNING", 0, "", None)
    seen = build_view(pod(), attempt, NOW + 6)
    assert (seen.state, seen.exit_code, seen.reason) == ("EXITED", 137, "OOMKilled")
    assert seen.message == "too much"
    assert seen.finished_at is not None
    assert seen.finished_at.timestamp() == NOW + 5
    assert seen.hash == hash_of(SPEC)


def test_each_start_is_another_container() -> None:
    one, two = Attempt.of(SPEC, 0, NOW), Attempt.of(SPEC, 1, NOW)
    assert build_view(pod(), one, NOW).id != build_view(pod(), two, NOW).id
