"""A control plane in a test's process and one of real Celery workers agree on final states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from kcm.testing import ControlPlane
from tests.scenarios.agreement import Scenario
from tests.scenarios.agreement_scenarios import SCENARIOS

IN_THE_SUITE = ("deployment-updated", "statefulset-with-claims", "job-indexed")
NODES = 3


@pytest.fixture(scope="module")
def deterministic() -> Iterator[ControlPlane]:
    with ControlPlane(seed=1, nodes=NODES) as plane:
        yield plane


@pytest.fixture(scope="module")
def processes() -> Iterator[ControlPlane]:
    with ControlPlane(mode="processes", nodes=NODES) as plane:
        yield plane


def cases() -> Iterator[object]:
    for scenario in SCENARIOS:
        marks = () if scenario.name in IN_THE_SUITE else (pytest.mark.long,)
        yield pytest.param(scenario, id=scenario.name, marks=marks)


@pytest.mark.scenario
@pytest.mark.parametrize("scenario", list(cases()))
def test_both_agree(
    scenario: Scenario, deterministic: ControlPlane, processes: ControlPlane
) -> None:
    ours, theirs = Counter(scenario.run(deterministic)), Counter(scenario.run(processes))
    only = {"the loop": list(ours - theirs), "processes": list(theirs - ours)}
    assert not any(only.values()), f"only in {only}"


def test_there_are_at_least_thirty_scenarios() -> None:
    assert len(SCENARIOS) >= 30
    assert {scenario.name for scenario in SCENARIOS} >= set(IN_THE_SUITE)
