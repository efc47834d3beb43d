"""The behavior of containers with scripts and without."""

from __future__ import annotations

import pytest

from kcm.api.core_v1.handlers import Probe
from kcm.apimachinery.durations import FOREVER
from kcm.helpers.pods import is_sidecar
from kcm.simulation.scripting.behaviour import Behaviour, Pace, behaviour_of
from kcm.simulation.scripting.scripts import (
    FAILURES_ANNOTATION,
    INDEX_ANNOTATION,
    NO_SCRIPT,
    ContainerScript,
    PodScript,
)
from tests.unit.kubelet.views import pod

PACE = Pace(start_after=1.0, start_jitter=0.0, run_for=2.0, stop_after=0.5)


def find_behaviour(
    name: str, script: PodScript = NO_SCRIPT, policy: str = "Always", number: int = 0
) -> Behaviour:
    """Returns the behavior of a container of a pod with an init container and a sidecar."""
    asked = pod("main", init="prepare proxy*", policy=policy)
    specs = [*asked.spec.containers, *(asked.spec.init_containers or ())]
    spec = next(one for one in specs if one.name == name)
    assert is_sidecar(spec) is (name == "proxy")
    return behaviour_of(asked, spec, number, script, PACE)


@pytest.mark.parametrize(
    ("name", "policy", "outcome", "run_for", "ready_after"),
    [
        ("main", "Always", "run", FOREVER, 0.0),
        ("main", "Never", "succeed", 2.0, 0.0),
        ("main", "OnFailure", "succeed", 2.0, 0.0),
        ("proxy", "Never", "run", FOREVER, 0.0),
        ("prepare", "Always", "succeed", 0.5, FOREVER),  # what prepares is never ready
    ],
)
def test_without_a_script_it_depends_on_the_kind(
    name: str, policy: str, outcome: str, run_for: float, ready_after: float
) -> None:
    does = find_behaviour(name, policy=policy)
    assert (does.outcome, does.run_for, does.ready_after) == (outcome, run_for, ready_after)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (ContainerScript(outcome="fail"), (2.0, 1, "Error")),
        (ContainerScript(outcome="crash"), (0.5, 1, "Error")),
        (ContainerScript(outcome="oom", run_for=4.0), (4.0, 137, "OOMKilled")),
        (ContainerScript(outcome="unhealthy", run_for=4.0), (4.0, 137, "Error")),
        (ContainerScript(run_for=4.0), (4.0, 0, "Completed")),
        (ContainerScript(exit_codes=(3, 0)), (2.0, 3, "Error")),
        (ContainerScript(outcome="never-ready"), (FOREVER, 0, "Completed")),
    ],
)
def test_a_script_says_how_it_ends(
    script: ContainerScript, expected: tuple[float, int, str]
) -> None:
    does = find_behaviour("main", PodScript(script))
    assert (does.run_for, does.exit_code, does.reason) == expected


def test_exit_codes_count_starts_and_the_last_one_repeats() -> None:
    script = PodScript(ContainerScript(exit_codes=(1, 2, 0)))
    codes = [find_behaviour("main", script, number=number).exit_code for number in range(5)]
    assert codes == [1, 2, 0, 0, 0]


def test_what_never_starts_and_what_is_never_ready_takes_for_ever() -> None:
    assert (
        find_behaviour("main", PodScript(ContainerScript(outcome="never-start"))).start_after
        == FOREVER
    )
    assert (
        find_behaviour("main", PodScript(ContainerScript(outcome="never-ready"))).ready_after
        == FOREVER
    )


def test_probes_with_a_delay_put_readiness_off() -> None:
    asked = pod()
    spec = asked.spec.containers[0].replace(readiness_probe=Probe(initial_delay_seconds=7))
    assert behaviour_of(asked, spec, 0, NO_SCRIPT, PACE).ready_after == 7


def test_containers_of_many_pods_start_in_ten_rounds() -> None:
    pace = Pace(start_after=0.3, start_jitter=0.2)
    pods = [pod("main").with_metadata(uid=f"{number}") for number in range(1000)]
    starts = [
        behaviour_of(one, one.spec.containers[0], 0, NO_SCRIPT, pace).start_after for one in pods
    ]
    assert sorted(set(starts)) == pytest.approx([0.3 + number * 0.02 for number in range(10)])


@pytest.mark.parametrize("text", ["²", "9" * 5000, "-1", "", "one"])
def test_an_index_that_is_no_number_is_none(text: str) -> None:
    asked = pod("main", annotations={INDEX_ANNOTATION: text, FAILURES_ANNOTATION: text})
    script = PodScript(ContainerScript(exit_codes_by_index={-1: (4, 5), 0: (6,), 1: (7,)}))
    assert behaviour_of(asked, asked.spec.containers[0], 0, script, PACE).exit_code == 4
