"""Phases, as a table."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)
from kcm.kubelet.status.phase import compute_phase
from tests.unit.kubelet.views import pod

RUNNING = ContainerState(running=ContainerStateRunning())
WAITING = ContainerState(waiting=ContainerStateWaiting())


def build_ended_state(code: int) -> ContainerState:
    return ContainerState(terminated=ContainerStateTerminated(exit_code=code))


def status(word: str) -> ContainerStatus:
    """Returns a status from a text: `main=running`, `main=waiting`, `main=0` or `main=back1`.

    A number is an exit code, `back` means waiting after that exit, and `again` running after it.
    A `+` at the end means started.
    """
    name, state = word.split("=")
    started, state = state.endswith("+"), state.rstrip("+")
    for prefix, now in (("back", WAITING), ("again", RUNNING)):
        if state.startswith(prefix):
            last = build_ended_state(int(state.removeprefix(prefix)))
            return ContainerStatus(name=name, state=now, last_state=last)
    known = {"running": RUNNING, "waiting": WAITING}
    container_state = known.get(state) or build_ended_state(int(state))
    return ContainerStatus(name=name, state=container_state, started=started)


@pytest.mark.parametrize(
    ("policy", "init", "states", "over", "expected"),
    [
        ("Always", "", "a=running b=running", False, "Running"),
        ("Always", "", "a=running b=waiting", False, "Pending"),
        ("Always", "", "a=running", False, "Pending"),  # nothing is known of b
        ("Always", "", "a=running b=1", False, "Running"),
        ("Always", "", "a=0 b=0", False, "Running"),
        ("Always", "", "a=0 b=back1", False, "Running"),
        ("Always", "", "a=0 b=0", True, "Succeeded"),
        ("Always", "", "a=0 b=1", True, "Failed"),
        ("OnFailure", "", "a=0 b=0", False, "Succeeded"),
        ("OnFailure", "", "a=0 b=1", False, "Running"),
        ("OnFailure", "", "a=0 b=running", False, "Running"),
        ("OnFailure", "", "a=0 b=back1", False, "Running"),
        ("OnFailure", "", "a=0 b=1", True, "Failed"),
        ("Never", "", "a=0 b=0", False, "Succeeded"),
        ("Never", "", "a=0 b=1", False, "Failed"),
        ("Never", "", "a=running b=1", False, "Running"),
        ("Always", "", "", False, "Pending"),
        # Init containers
        ("Always", "i", "i=waiting a=waiting b=waiting", False, "Pending"),
        ("Always", "i", "i=running a=waiting b=waiting", False, "Pending"),
        ("Always", "i", "i=1 a=waiting b=waiting", False, "Pending"),
        ("Always", "i", "i=back1 a=waiting b=waiting", False, "Pending"),
        ("Never", "i", "i=1 a=waiting b=waiting", False, "Failed"),
        ("Always", "i", "i=0 a=running b=running", False, "Running"),
        ("Always", "i j", "i=0 j=running a=waiting b=waiting", False, "Pending"),
        # Init containers that run again, in a new sandbox
        ("Always", "i", "i=running a=running b=running", False, "Pending"),
        ("Never", "i", "i=waiting a=0 b=0", False, "Pending"),
        ("OnFailure", "i", "i=1 a=running b=running", False, "Running"),
        ("Never", "i", "i=again1 a=waiting b=waiting", False, "Pending"),
        # Sidecars hold a pod back until they have started, and keep it alive while they run.
        ("Always", "s*", "s=running a=waiting b=waiting", False, "Pending"),
        ("Always", "s*", "s=running+ a=running b=running", False, "Running"),
        ("Always", "s*", "s=running a=running b=running", False, "Running"),
        ("Never", "s*", "s=running+ a=0 b=0", False, "Running"),
        ("Never", "s*", "s=running+ a=0 b=0", True, "Running"),
        ("Never", "s*", "s=0 a=0 b=0", False, "Succeeded"),
        ("Always", "s*", "a=running b=running", False, "Pending"),  # nothing is known of s
        ("Never", "s*", "s=1 a=0 b=0", True, "Succeeded"),
        ("Always", "s*", "s=back1 a=running b=running", False, "Running"),
    ],
)
def test_the_phase_follows_from_the_containers_states(
    policy: str, init: str, states: str, over: bool, expected: str
) -> None:
    """TestPodPhaseWithRestartAlways, ...AlwaysInitContainers, ...AlwaysRestartableInitContainers,
    ...RestartNever, ...RestartOnFailure and their siblings (kubelet_pods_test.go)."""
    statuses = [status(word) for word in states.split()]
    assert (
        compute_phase(pod("a", "b", init=init, policy=policy).spec, statuses, over=over) == expected
    )


def test_a_pod_runs_while_a_container_starts_again_by_its_own_policy() -> None:
    spec = pod("a", "b", policy="Never").spec
    ended = [status("a=1"), status("b=0")]
    assert compute_phase(spec, ended, over=False) == "Failed"
    spec.containers[0].restart_policy = "OnFailure"
    assert compute_phase(spec, ended, over=False) == "Running"
