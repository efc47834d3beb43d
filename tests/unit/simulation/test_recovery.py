from __future__ import annotations

from typing import Any

import pytest

from kcm.simulation import recovery
from tests.unit.simulation.life import PACE, START, Life, pod

CASES: dict[str, tuple[dict[str, str], dict[str, Any], float]] = {
    "before the start": ({}, {}, 0.5),
    "running": ({}, {}, 5),
    "about to end": ({"run-for": "20s"}, {"restartPolicy": "Never"}, 15),
    "not ready yet": ({"ready-after": "20s"}, {}, 10),
    "ended": ({}, {"restartPolicy": "Never"}, 9),
    "failed": ({"outcome": "oom"}, {"restartPolicy": "Never"}, 9),
    "in a crash loop": ({"outcome": "crash", "run-for": "1s"}, {}, 20),
    "after an init container": ({}, {"initContainers": [{"name": "a", "image": "i"}]}, 9),
    "debugged": ({}, {"ephemeralContainers": [{"name": "debug", "image": "i"}]}, 9),
    "with a sidecar": (
        {},
        {"initContainers": [{"name": "a", "image": "i", "restartPolicy": "Always"}]},
        9,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_restarted_simulator_goes_on_where_the_old_one_was(name: str) -> None:
    annotations, spec, at = CASES[name]
    life = Life(pod(annotations, **spec))
    life.until(at)
    life.step(at)
    other = Life(life.pod)
    other.run = recovery.recover_run(life.pod, other.script, START + at, PACE)
    assert other.step(at) == life.step(at)
    assert other.pod.status == life.pod.status
    other.now = life.now = at
    there = [(round(when, 1), what) for when, what in other.until(at + 60)]
    here = [(round(when, 1), what) for when, what in life.until(at + 60)]
    if name != "before the start":
        assert there == here
    assert [what for _, what in there] == [what for _, what in here]


def test_a_refused_pod_stays_refused() -> None:
    status = pod().status.replace(phase="Failed", reason="OutOfcpu", message="no room")
    refused = pod().with_status(status)
    run = recovery.recover_run(refused, Life(refused).script, START, PACE)
    assert run.rejected
    assert run.over
    life = Life(refused)
    life.run = run
    assert life.step(1) == "0/1 OutOfcpu"
    assert life.pod.status.message == "no room"
