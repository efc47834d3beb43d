"""When a container is probed, and what follows: tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    PodStatus,
    Probe,
)
from kcm.kubelet.prober.results import Result
from kcm.kubelet.prober.state import Kind, State, Step, Subject, judge, look, probe_of
from kcm.testing import builders
from kcm.testing.builders import START

S, R, L = Kind.STARTUP, Kind.READINESS, Kind.LIVENESS
GOOD, BAD, UNKNOWN = Result.SUCCESS, Result.FAILURE, Result.UNKNOWN
NOW = START + timedelta(seconds=10)
KNOWN = State(container_id="1")


def subject(
    kind: Kind, *, restart: str = "Always", deleting: bool = False, **probe: Any
) -> Subject:
    pod = builders.pod(restart_policy=restart, deleting=START if deleting else None)
    return Subject(kind, pod, pod.spec.containers[0], Probe(**probe))


def status(
    state: str = "running",
    *,
    id_: str = "process://1",
    started: bool = True,
    phase: str = "Running",
) -> PodStatus:
    states = {
        "running": ContainerState(running=ContainerStateRunning(started_at=START)),
        "terminated": ContainerState(terminated=ContainerStateTerminated(exit_code=1)),
        "waiting": ContainerState(),
    }
    found = ContainerStatus(name="c", state=states[state], container_id=id_, started=started)
    return PodStatus(phase=phase, container_statuses=[found])


@pytest.mark.parametrize(
    ("kind", "state", "seen", "expected"),
    [
        pytest.param(L, State(), None, Step(State()), id="no status yet"),
        pytest.param(
            L, KNOWN, status(phase="Failed"), Step(KNOWN, go_on=False), id="the pod has failed"
        ),
        pytest.param(
            L, KNOWN, status(phase="Succeeded"), Step(KNOWN, go_on=False), id="the pod is done"
        ),
        pytest.param(L, State(), PodStatus(), Step(State()), id="no such container yet"),
        pytest.param(L, State(), status(id_=""), Step(State()), id="the container has no id yet"),
        pytest.param(L, State(), status(), Step(KNOWN, "", GOOD, probe=True), id="alive at first"),
        pytest.param(R, State(), status(), Step(KNOWN, "", BAD, probe=True), id="unready at first"),
        pytest.param(
            S, State(), status(started=False), Step(KNOWN, "", UNKNOWN, probe=True),
            id="whether it has started is not known at first",
        ),
        pytest.param(
            L, replace(KNOWN, on_hold=True), status(id_="process://2"),
            Step(State("2"), "1", GOOD, probe=True), id="a new container ends the hold",
        ),
        pytest.param(
            L, replace(KNOWN, on_hold=True), status(), Step(replace(KNOWN, on_hold=True)),
            id="on hold until the container is replaced",
        ),
        pytest.param(
            R, KNOWN, status("terminated"), Step(KNOWN, "", BAD), id="ended, to be started again"
        ),
        pytest.param(R, KNOWN, status("waiting"), Step(KNOWN, "", BAD), id="waiting is not ready"),
        pytest.param(S, KNOWN, status(), Step(KNOWN), id="no startup probe once started"),
        pytest.param(L, KNOWN, status(started=False), Step(KNOWN), id="no liveness before start"),
        pytest.param(R, KNOWN, status(started=False), Step(KNOWN), id="no readiness before start"),
    ],
)  # fmt: skip
def test_a_container_is_probed_by_its_status(
    kind: Kind, state: State, seen: PodStatus | None, expected: Step
) -> None:
    assert look(subject(kind), state, seen, NOW) == expected


@pytest.mark.parametrize(("delay", "probed"), [(0, True), (10, True), (11, False)])
def test_the_first_probe_waits_for_the_initial_delay(delay: int, probed: bool) -> None:
    step = look(subject(R, initial_delay_seconds=delay), KNOWN, status(), NOW)
    assert step.probe is probed


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (L, Step(KNOWN, "", GOOD, go_on=False)),
        (S, Step(KNOWN, "", GOOD, go_on=False)),
        (R, Step(KNOWN, probe=True)),
    ],
)
def test_a_pod_that_ends_is_only_asked_whether_it_is_ready(kind: Kind, expected: Step) -> None:
    seen = status(started=True)
    assert look(subject(kind, deleting=True), KNOWN, seen, NOW) == expected


def test_a_container_that_is_not_started_again_is_not_probed_again() -> None:
    step = look(subject(L, restart="Never"), KNOWN, status("terminated"), NOW)
    assert not step.go_on


def test_a_sidecar_is_started_again_whatever_the_policy() -> None:
    sidecar = builders.container("side", restart_policy="Always")
    pod = builders.pod(restart_policy="Never", init_containers=[sidecar])
    assert Subject(L, pod, sidecar, Probe()).restarts


@pytest.mark.parametrize(
    ("kind", "found", "noted"),
    [
        # Failures count from the third, successes from the first.
        (L, [BAD, BAD, BAD], [None, None, BAD]),
        (L, [BAD, BAD, GOOD, BAD, BAD, BAD], [None, None, GOOD, None, None, BAD]),
        (R, [GOOD, BAD, BAD, BAD, BAD, GOOD], [GOOD, None, None, BAD, BAD, GOOD]),
        (S, [BAD, BAD, GOOD], [None, None, GOOD]),
    ],
)
def test_results_count_from_their_thresholds(
    kind: Kind, found: list[Result], noted: list[Result | None]
) -> None:
    state, seen = KNOWN, []
    for result in found:
        step = judge(subject(kind), state, result)
        state = step.state
        seen.append(step.note)
    assert seen == noted


@pytest.mark.parametrize(
    ("thresholds", "found", "noted"),
    [
        ({"failure_threshold": 1}, [BAD], BAD),
        ({"success_threshold": 2}, [GOOD], None),
        ({"success_threshold": 2}, [GOOD, GOOD], GOOD),
        ({"success_threshold": 2}, [GOOD, BAD, GOOD], None),
    ],
)
def test_thresholds_are_the_probes_own(
    thresholds: dict[str, int], found: list[Result], noted: Result | None
) -> None:
    state = KNOWN
    for result in found:
        step = judge(subject(R, **thresholds), state, result)
        state = step.state
    assert step.note is noted


@pytest.mark.parametrize(("kind", "held"), [(L, True), (S, True), (R, False)])
def test_what_will_be_restarted_is_on_hold(kind: Kind, held: bool) -> None:
    step = judge(subject(kind, failure_threshold=1), KNOWN, BAD)
    assert (step.state.on_hold, step.state.run) == (held, 0 if held else 1)


def test_each_kind_has_a_probe_of_its_own() -> None:
    probes = [Probe(period_seconds=number) for number in (1, 2, 3)]
    names = ("startup_probe", "readiness_probe", "liveness_probe")
    container = builders.container(**dict(zip(names, probes, strict=True)))
    assert [probe_of(container, kind) for kind in (S, R, L)] == probes
