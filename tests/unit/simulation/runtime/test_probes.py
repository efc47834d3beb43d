"""The results of probes of simulated containers."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.handlers import Probe
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.prober.state import ProbedContainer, ProbeError, ProbeKind
from kcm.kubelet.status.generate import StatusContext, generate_status
from kcm.simulation.runtime.containers import Attempt, build_view
from kcm.simulation.runtime.prober import SimulatedProber
from kcm.simulation.runtime.probes import build_apply_probes, build_failure_message
from kcm.simulation.scripting.behaviour import Pace, behaviour_of
from kcm.simulation.scripting.scripts import ContainerScript, PodScript
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.views import pod, sandbox


def start_attempt(asked: Pod, at: float, **script: Any) -> Attempt:
    spec = asked.spec.containers[0]
    attempt = Attempt.of(spec, 0, at)
    whole = PodScript(ContainerScript(**script))
    attempt.start(at, behaviour_of(asked, spec, 0, whole, Pace()))
    return attempt


@pytest.mark.parametrize(
    ("script", "passing"),
    [
        ({}, "Startup Readiness Liveness"),
        ({"outcome": "never-ready"}, "Liveness"),
        ({"ready_after": 3.0}, "Liveness"),
        ({"outcome": "unhealthy", "run_for": 1.0}, "Startup Readiness"),
    ],
)
def test_each_kind_finds_what_the_script_says(script: dict[str, object], passing: str) -> None:
    clock, asked = FakeClock(), pod()
    attempt = start_attempt(asked, clock.now().timestamp(), **script)
    clock.step(2)
    prober = SimulatedProber({"id": attempt}.get, clock)
    subjects = [
        ProbedContainer(kind, asked, asked.spec.containers[0], Probe()) for kind in ProbeKind
    ]
    successes = [
        s.kind for s in subjects if prober.probe(s, asked.status, "id").outcome == "success"
    ]
    assert " ".join(successes) == passing


def test_what_does_not_run_cannot_be_probed() -> None:
    asked = pod()
    subject = ProbedContainer(ProbeKind.LIVENESS, asked, asked.spec.containers[0], Probe())
    with pytest.raises(ProbeError, match="does not run"):
        SimulatedProber(lambda _: None, FakeClock()).probe(subject, asked.status, "id")


@pytest.mark.parametrize(
    ("startup", "at", "expected"),
    [
        (False, 1, (True, False)),
        (False, 3, (True, True)),
        (True, 1, (False, False)),
        (True, 3, (True, True)),
    ],
)
def test_a_status_is_ready_when_the_script_says_so(
    startup: bool, at: float, expected: tuple[bool, bool]
) -> None:
    asked, now = pod(), 1000.0
    probe = Probe() if startup else None
    specs = [asked.spec.containers[0].replace(startup_probe=probe)]
    asked = asked.with_spec(asked.spec.replace(containers=specs))
    attempt = start_attempt(asked, now, ready_after=3.0)
    view = PodView("u", containers=[build_view(asked, attempt, now + at)], sandboxes=[sandbox()])
    context = StatusContext(
        (), "simulated", lambda _: None, build_apply_probes(lambda _: attempt, now + at)
    )
    status = generate_status(asked, asked.status, view, context, over=False)
    one = (status.container_statuses or [])[0]
    assert (one.started, one.ready) == expected


def test_a_failure_is_told_in_the_words_of_its_probe() -> None:
    get = Probe.model_validate({"httpGet": {"port": 80}})
    assert build_failure_message("Liveness", get).endswith("HTTP probe failed with statuscode: 503")
    connect = Probe.model_validate({"tcpSocket": {"port": 80}})
    assert "connection refused" in build_failure_message("Readiness", connect)
    assert build_failure_message("Startup", None) == "Startup probe failed: (simulated)"
