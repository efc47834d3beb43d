"""When a container is probed, and what results lead to, as tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    PodStatus,
    Probe,
)
from kcm.kubelet.prober.state import (
    ProbedContainer,
    ProbeKind,
    ProbeResults,
    ProbeStep,
    ProbeUpdate,
    ProbeVerdict,
    ProbeWorkerState,
    apply_result,
    plan_probe,
    probe_of,
)
from kcm.testing import builders
from kcm.testing.builders import START

Step, Memory = ProbeStep, ProbeWorkerState
S, R, L = ProbeKind.STARTUP, ProbeKind.READINESS, ProbeKind.LIVENESS
GOOD, BAD, UNKNOWN = ProbeVerdict.SUCCESS, ProbeVerdict.FAILURE, ProbeVerdict.UNKNOWN
NOW = START + timedelta(seconds=10)
KNOWN = Memory(container_id="1")


def subject(
    kind: ProbeKind, *, restart: str = "Always", deleting: bool = False, **probe: Any
) -> ProbedContainer:
    pod = builders.pod(restart_policy=restart, deleting=START if deleting else None)
    return ProbedContainer(kind, pod, pod.spec.containers[0], Probe(**probe))


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
    container_status = ContainerStatus(
        name="c", state=states[state], container_id=id_, started=started
    )
    return PodStatus(phase=phase, container_statuses=[container_status])


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}


@pytest.mark.parametrize(
    ("kind", "state", "seen", "expected"),
    [
        pytest.param(L, Memory(), None, Step(Memory()), id="no status yet"),
        pytest.param(
            L, KNOWN, status(phase="Failed"), Step(KNOWN, go_on=False), id="the pod has failed"
        ),
        pytest.param(
            L, KNOWN, status(phase="Succeeded"), Step(KNOWN, go_on=False), id="the pod is done"
        ),
        pytest.param(L, Memory(), PodStatus(), Step(Memory()), id="no such container yet"),
        pytest.param(L, Memory(), status(id_=""), Step(Memory()), id="no id yet"),
        pytest.param(L, Memory(), status(), Step(KNOWN, "", GOOD, probe=True), id="alive at first"),
        pytest.param(R, Memory(), status(), Step(KNOWN, "", BAD, probe=True), id="unready first"),
        pytest.param(
            S, Memory(), status(started=False), Step(KNOWN, "", UNKNOWN, probe=True),
            id="whether it has started is not known at first",
        ),
        pytest.param(
            L, replace(KNOWN, on_hold=True), status(id_="process://2"),
            Step(Memory("2"), "1", GOOD, probe=True), id="a new container ends the hold",
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
    kind: ProbeKind, state: ProbeWorkerState, seen: PodStatus | None, expected: ProbeStep
) -> None:
    assert plan_probe(subject(kind), state, seen, NOW) == expected


@pytest.mark.parametrize(("delay", "probed"), [(0, True), (10, True), (11, False)])
def test_the_first_probe_waits_for_the_initial_delay(delay: int, probed: bool) -> None:
    step = plan_probe(subject(R, initial_delay_seconds=delay), KNOWN, status(), NOW)
    assert step.probe is probed


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (L, Step(KNOWN, "", GOOD, go_on=False)),
        (S, Step(KNOWN, "", GOOD, go_on=False)),
        (R, Step(KNOWN, probe=True)),
    ],
)
def test_a_pod_that_ends_is_only_asked_whether_it_is_ready(
    kind: ProbeKind, expected: ProbeStep
) -> None:
    seen = status(started=True)
    assert plan_probe(subject(kind, deleting=True), KNOWN, seen, NOW) == expected


def test_a_container_that_is_not_started_again_is_not_probed_again() -> None:
    step = plan_probe(subject(L, restart="Never"), KNOWN, status("terminated"), NOW)
    assert not step.go_on


@pytest.mark.parametrize(
    ("fields", "restarts"),
    [
        ({}, [False, False]),
        ({"restartPolicy": "Always"}, [True, True]),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE]}, [False, True]),
    ],
)
def test_a_container_of_a_pod_that_never_restarts_may_do_so(
    fields: dict[str, Any], restarts: list[bool]
) -> None:
    container = Container.model_validate({"name": "main", "image": "x", **fields})
    probed = ProbedContainer(
        L, builders.pod(restart_policy="Never", containers=[container]), container, Probe()
    )
    assert [probed.restarts_after(code) for code in (0, 42)] == restarts


@pytest.mark.parametrize(
    ("kind", "results", "noted"),
    [
        # Failures count from the third, successes from the first.
        (L, [BAD, BAD, BAD], [None, None, BAD]),
        (L, [BAD, BAD, GOOD, BAD, BAD, BAD], [None, None, GOOD, None, None, BAD]),
        (R, [GOOD, BAD, BAD, BAD, BAD, GOOD], [GOOD, None, None, BAD, BAD, GOOD]),
        (S, [BAD, BAD, GOOD], [None, None, GOOD]),
    ],
)
def test_results_count_from_their_thresholds(
    kind: ProbeKind, results: list[ProbeVerdict], noted: list[ProbeVerdict | None]
) -> None:
    state, seen = KNOWN, []
    for result in results:
        step = apply_result(subject(kind), state, result)
        state = step.state
        seen.append(step.verdict)
    assert seen == noted


@pytest.mark.parametrize(
    ("thresholds", "results", "noted"),
    [
        ({"failure_threshold": 1}, [BAD], BAD),
        ({"success_threshold": 2}, [GOOD], None),
        ({"success_threshold": 2}, [GOOD, GOOD], GOOD),
        ({"success_threshold": 2}, [GOOD, BAD, GOOD], None),
    ],
)
def test_thresholds_are_the_probes_own(
    thresholds: dict[str, Any], results: list[ProbeVerdict], noted: ProbeVerdict | None
) -> None:
    state = KNOWN
    for result in results:
        step = apply_result(subject(R, **thresholds), state, result)
        state = step.state
    assert step.verdict is noted


@pytest.mark.parametrize(("kind", "held"), [(L, True), (S, True), (R, False)])
def test_what_will_be_restarted_is_on_hold(kind: ProbeKind, held: bool) -> None:
    step = apply_result(subject(kind, failure_threshold=1), KNOWN, BAD)
    assert (step.state.on_hold, step.state.run) == (held, 0 if held else 1)


def test_each_kind_has_a_probe_of_its_own() -> None:
    probes = [Probe(period_seconds=number) for number in (1, 2, 3)]
    startup, readiness, liveness = probes
    container = builders.container(
        startup_probe=startup, readiness_probe=readiness, liveness_probe=liveness
    )
    assert [probe_of(container, kind) for kind in (S, R, L)] == probes


def test_only_changes_are_told() -> None:
    heard: list[ProbeUpdate] = []
    results = ProbeResults(heard.append)
    pod = builders.pod()
    for result in (
        ProbeVerdict.UNKNOWN,
        ProbeVerdict.SUCCESS,
        ProbeVerdict.SUCCESS,
        ProbeVerdict.FAILURE,
    ):
        results.set("1", result, pod)
    assert [update.verdict.value for update in heard] == ["unknown", "successful", "failed"]
    assert heard[0] == ProbeUpdate("1", ProbeVerdict.UNKNOWN, pod.uid or "")


def test_a_container_passes_or_not_once_that_is_known() -> None:
    results = ProbeResults()
    pod = builders.pod()
    assert results.passes("1") is None
    for result, expected in (
        (ProbeVerdict.UNKNOWN, None), (ProbeVerdict.SUCCESS, True), (ProbeVerdict.FAILURE, False),
    ):  # fmt: skip
        results.set("1", result, pod)
        assert results.passes("1") is expected
    results.remove("1")
    assert results.get("1") is None
