"""The run of a pod, and its view for the kubelet's functions."""

from __future__ import annotations

from kcm.simulation.runs import PodRun, begin
from kcm.simulation.runtime.containers import Attempt
from kcm.simulation.scripting.behaviour import Behaviour
from tests.unit.simulation.life import START, pod

DOES = Behaviour("fail", 0.0, 0.0, run_for=1.0, stop_after=0.0, exit_code=1, reason="Error")


def run(starts: int) -> PodRun:
    """Returns the run of a pod whose container was started that often, for a second each time."""
    asked = pod()
    pod_run = begin(asked, START, ("10.0.0.1",))
    pod_run.sandbox = starts > 0
    for number in range(starts):
        attempt = Attempt.of(asked.spec.containers[0], number, START + 2 * number)
        attempt.start(START + 2 * number, DOES)
        pod_run.add(attempt)
    return pod_run


def test_of_each_container_the_one_before_it_is_kept() -> None:
    pod_run = run(4)
    assert [attempt.number for attempt in pod_run.attempts] == [3, 2]
    newest, before = pod_run.newest("main"), pod_run.before("main")
    assert newest is not None
    assert before is not None
    assert (newest.number, before.number) == (3, 2)
    assert run(1).before("main") is None


def test_the_view_is_a_runtimes_newest_first() -> None:
    view = run(3).view(pod(), START + 4.5)
    assert [(one.restart_count, one.state) for one in view.containers] == [
        (2, "RUNNING"),
        (1, "EXITED"),
    ]
    assert view.ips == ("10.0.0.1",)
    assert view.ready_sandbox is not None


def test_without_a_sandbox_and_after_the_end_there_is_no_address() -> None:
    assert run(0).view(pod(), START).sandboxes == []
    ended = run(1)
    ended.over = True
    view = ended.view(pod(), START + 5)
    assert (view.ips, view.ready_sandbox) == ((), None)


def test_a_pod_is_ready_once_all_that_are_to_run_side_by_side_are() -> None:
    pod_run = run(1)
    assert pod_run.is_ready(START + 0.5)
    pod_run.members = 2
    assert not pod_run.is_ready(START + 0.5)
    assert not run(1).is_ready(START + 1)
