"""A pod's whole status: containers, phase, conditions and addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kcm.api.core_v1 import Container, Pod, PodCondition, PodStatus
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.status.conditions import needs_readiness_reconciled
from kcm.kubelet.status.generate import StatusContext, generate_status
from tests.unit.kubelet.probers import without_probes
from tests.unit.kubelet.views import NOW, container_view, pod, sandbox, view


def status_of(
    asked: Pod, seen: PodView, *, old: PodStatus | None = None, over: bool = False, **changes: Any
) -> PodStatus:
    given = {
        "host_ips": ("10.0.0.1",),
        "runtime_name": "process",
        "waiting_reason": lambda _: None,
        "apply_probes": without_probes,
        "restarts_all": True,
    }
    context = StatusContext(**{**given, **changes})
    return generate_status(asked, old or asked.status, seen, context, over=over)


def conditions(status: PodStatus) -> dict[str, str]:
    return {
        c.type: c.status + (f" {c.reason}" if c.reason else "") for c in status.conditions or ()
    }


def test_a_running_pod_is_ready() -> None:
    status = status_of(pod(), view("main=running"))
    assert conditions(status) == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert (status.phase, status.pod_ip, status.host_ip) == ("Running", "127.64.0.1", "10.0.0.1")
    assert status.container_statuses is not None
    assert status.container_statuses[0].container_id == "process://main-id"


@pytest.mark.parametrize(
    ("asked", "states", "expected"),
    [
        (pod(init="i"), "", {"Initialized": "False ContainersNotInitialized",
                             "Ready": "False ContainersNotReady"}),
        (pod(init="i"), "i=0 main=running", {"Initialized": "True", "Ready": "True"}),
        (pod(init="s*"), "s=running", {"Initialized": "True",
                                       "ContainersReady": "False ContainersNotReady"}),
        (pod(init="s*"), "s=1 main=running", {"Initialized": "True",
                                              "Ready": "False ContainersNotReady"}),
        (pod(policy="Never"), "main=0", {"Initialized": "True PodCompleted",
                                         "Ready": "False PodCompleted"}),
        (pod(policy="Never"), "main=1", {"Ready": "False PodFailed",
                                         "ContainersReady": "False PodFailed"}),
    ],
)  # fmt: skip
def test_conditions_say_what_is_missing(asked: Pod, states: str, expected: dict[str, str]) -> None:
    by_type = conditions(status_of(asked, view(states)))
    assert {name: by_type[name] for name in expected} == expected


def test_readiness_gates_hold_a_pod_back_until_somebody_opens_them() -> None:
    gated = pod(readiness_gates=[{"condition_type": "example.com/lb"}])
    closed = status_of(gated, view("main=running"))
    assert conditions(closed)["Ready"] == "False ReadinessGatesNotReady"
    gate = PodCondition(type="example.com/lb", status="True")
    opened = closed.replace(conditions=[*(closed.conditions or ()), gate])
    assert needs_readiness_reconciled(gated.with_status(opened))
    status = status_of(gated, view("main=running"), old=opened)
    assert conditions(status)["Ready"] == "True"
    assert conditions(status)["example.com/lb"] == "True"
    assert not needs_readiness_reconciled(gated.with_status(status))


def test_a_container_that_waits_says_why_and_shows_its_last_end() -> None:
    status = status_of(
        pod(), view("main=1"), waiting_reason=lambda _: ("CrashLoopBackOff", "back-off 10s ...")
    )
    assert status.container_statuses is not None
    state, last = status.container_statuses[0].state, status.container_statuses[0].last_state
    assert state is not None
    assert state.waiting is not None
    assert state.waiting.reason == "CrashLoopBackOff"
    assert last is not None
    assert last.terminated is not None
    assert last.terminated.exit_code == 1
    assert status.phase == "Running"


def test_a_container_that_was_never_made_waits_for_its_turn() -> None:
    for asked, reason in ((pod(), "ContainerCreating"), (pod(init="i"), "PodInitializing")):
        statuses = status_of(asked, view()).container_statuses
        assert statuses is not None
        assert statuses[0].state is not None
        assert statuses[0].state.waiting is not None
        assert statuses[0].state.waiting.reason == reason


def test_a_container_that_the_runtime_lost_counts_as_failed_and_restarted() -> None:
    asked = pod()
    before = status_of(asked, view("main=running"))
    status = status_of(asked.with_status(before), view())
    assert status.container_statuses is not None
    last = status.container_statuses[0].last_state
    assert last is not None
    assert last.terminated is not None
    assert (last.terminated.exit_code, last.terminated.reason) == (137, "ContainerStatusUnknown")
    assert status.container_statuses[0].restart_count == 1


@pytest.mark.parametrize(("deleted", "restarts"), [(False, 1), (True, 0)])
def test_a_container_that_went_away_is_restarted_only_if_its_pod_stays(
    deleted: bool, restarts: int
) -> None:
    """Cases of Test_generateAPIPodStatus (kubelet_pods_test.go).

    They are "current status ready, with different previous status", and the pod that is being
    deleted.
    """
    asked = pod(metadata={"deletion_timestamp": NOW}) if deleted else pod()
    asked = asked.with_status(status_of(asked, view("main=running")))
    (container,) = status_of(asked, view()).container_statuses or []
    assert container.restart_count == restarts


def test_the_end_of_a_pod_is_for_good_and_keeps_its_reason() -> None:
    evicted = PodStatus(phase="Failed", reason="Evicted", message="too much memory")
    status = status_of(pod(), view("main=0"), old=evicted, over=True)
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", "too much memory")


def test_a_pod_that_has_to_go_fails_with_the_reason() -> None:
    status = status_of(pod(), view("main=running"), eviction=("DeadlineExceeded", "too long"))
    assert (status.phase, status.reason) == ("Failed", "DeadlineExceeded")


def test_the_address_stays_after_the_sandbox_has_ended() -> None:
    before = status_of(pod(), view("main=running"))
    stopped = replace(view("main=0"), sandboxes=[sandbox(ready=False)], ips=())
    status = status_of(pod(), stopped, old=before, over=True)
    assert status.pod_ip == "127.64.0.1"
    assert conditions(status)["PodReadyToStartContainers"] == "False"


def test_with_the_machines_network_a_pod_has_its_address() -> None:
    status = status_of(pod(host_network=True), view("main=running"))
    assert status.pod_ip == "10.0.0.1"


def test_two_ends_of_a_container_show_as_state_and_last_state() -> None:
    seen = replace(
        view(),
        containers=[container_view("main", "running", at=2), container_view("main", "3", at=1)],
    )
    statuses = status_of(pod(), seen).container_statuses
    assert statuses is not None
    last = statuses[0].last_state
    assert last is not None
    assert last.terminated is not None
    assert last.terminated.exit_code == 3


def test_status_and_conditions_say_of_which_generation_they_are() -> None:
    asked = pod().with_metadata(generation=3)
    status = status_of(asked, view("main=running"))
    assert status.observed_generation == 3
    assert {c.observed_generation for c in status.conditions or ()} == {3}


# --- All containers start again: after the cases with RestartAllContainers of
# TestGenerateAllContainersRestartingCondition and Test_generateAPIPodStatus, Kubernetes 1.36.


def restarting() -> tuple[Pod, PodStatus]:
    """Returns a pod whose container `cause` restarts all when it exits with 42, and its status."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    asked = pod("cause", "other", init="i", policy="Never")
    cause, other = asked.spec.containers
    ruled = Container.model_validate(
        {"name": "cause", "image": "x", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    )
    assert cause.name == ruled.name
    asked = asked.with_spec(asked.spec.replace(containers=[ruled, other]))
    return asked, asked.status


def test_a_container_that_asks_for_it_has_all_restarted() -> None:
    asked, old = restarting()
    running = status_of(asked, view("i=0 cause=running other=running"), old=old)
    assert conditions(running)["AllContainersRestarting"] == "False"
    asking = status_of(asked, view("i=0 cause=42 other=running"), old=running)
    assert conditions(asking)["AllContainersRestarting"] == "True RestartAllContainersStarted"
    assert asking.phase == "Running"
    assert status_of(asked, view("i=0 cause=1 other=running"), old=running).phase == "Running"
    # The condition holds until the last of them is gone, whatever is still there.
    going = status_of(asked, view("i=0"), old=asking)
    assert conditions(going)["AllContainersRestarting"] == "True RestartAllContainersStarted"


def test_removed_containers_wait_and_count_the_restart() -> None:
    asked, old = restarting()
    running = status_of(asked, view("i=0 cause=running other=running"), old=old)
    asking = status_of(asked, view("i=0 cause=42 other=running"), old=running)
    removed = status_of(asked, view(), old=asking)
    assert conditions(removed)["AllContainersRestarting"] == "False"
    assert removed.phase == "Running"
    for one in (*(removed.init_container_statuses or ()), *(removed.container_statuses or ())):
        assert one.restart_count == 1
        assert one.state is not None
        assert one.state.waiting is not None
        assert one.state.waiting.reason == "RestartingAllContainers"
        assert one.last_state is not None
        assert one.last_state.terminated is not None
        assert one.last_state.terminated.exit_code == 137
    again = status_of(asked, view("i=0 cause=running other=running"), old=removed)
    assert [one.restart_count for one in again.container_statuses or ()] == [1, 1]
    assert (again.phase, conditions(again)["AllContainersRestarting"]) == ("Running", "False")


def test_other_exits_and_pods_without_such_a_rule_restart_nothing() -> None:
    asked, old = restarting()
    ended = status_of(asked, view("i=0 cause=1 other=1"), old=old)
    assert (ended.phase, conditions(ended)["AllContainersRestarting"]) == (
        "Failed",
        "False PodFailed",
    )
    completed = status_of(asked, view("i=0 cause=0 other=0"), old=old)
    assert (completed.phase, conditions(completed)["AllContainersRestarting"]) == (
        "Succeeded",
        "False PodCompleted",
    )
    assert "AllContainersRestarting" not in conditions(status_of(pod(), view("main=running")))


def test_an_exit_that_the_status_still_has_restarts_nothing_once_the_container_runs() -> None:
    asked, old = restarting()
    ended = status_of(asked, view("i=0 cause=42 other=running"), old=old, restarts_all=False)
    again = status_of(asked, view("i=0 cause=running other=running"), old=ended)
    assert conditions(again)["AllContainersRestarting"] == "False"


def test_a_node_that_does_not_restart_all_says_nothing_of_it() -> None:
    asked, old = restarting()
    seen = status_of(asked, view("i=0 cause=42 other=running"), old=old, restarts_all=False)
    assert "AllContainersRestarting" not in conditions(seen)
