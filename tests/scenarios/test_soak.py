"""A soak of some seconds measures every process, and tells how each grows."""

from __future__ import annotations

import pytest

from tests.scenarios.soak import describe_growth, run
from tests.scenarios.system import System, system

__all__ = ["system"]


@pytest.mark.scenario
@pytest.mark.long
def test_each_process_is_measured_while_objects_change(
    system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    system.start("--", "--event-ttl=5m")
    run(system, minutes=0.2, every=0.05, warm=0.0)
    said = capsys.readouterr().out
    for process in ("kcm.apiserver", "worker", "valkey-server"):
        assert any("MB/h" in line and process in line for line in said.splitlines()), said
    assert system.get("deployments", "web-0")["spec"]["replicas"] in (1, 2, 3, 4)


def test_the_growth_of_a_process_begins_after_it_is_warm_and_is_told_of_those_that_live() -> None:
    flat = [(0.0, 10.0), (30.0, 50.0), (60.0, 50.0), (90.0, 50.0)]
    grows = [(0.0, 1.0), (30.0, 10.0), (60.0, 11.0), (90.0, 12.0)]
    ended = [(0.0, 1.0), (30.0, 1.0)]
    lines = list(describe_growth({"flat": flat, "grows": grows, "ended": ended}, 30.0))
    assert [line.split() for line in lines] == [
        ["+0.00", "MB/h", "50.0", "->", "50.0", "MB", "flat"],
        ["+2.00", "MB/h", "10.0", "->", "12.0", "MB", "grows"],
    ]
