from __future__ import annotations

import pytest

from tools.conformance.page import describe, find_reason, render
from tools.conformance.results import COLUMNS, Results, read

PASSING = "[sig-apps] Job should run a job to completion [Conformance]"
FAILING = "[sig-api-machinery] Watchers a | b <c> [Conformance]"
IMPOSSIBLE = "[sig-api-machinery] AdmissionWebhook [Privileged:ClusterAdmin] should deny crd"
RESULTS = Results(
    "0123456789abcdef", "v1.36.2", {PASSING: "passed", FAILING: "cut", IMPOSSIBLE: "failed"}
)


def test_each_spec_says_how_it_ended() -> None:
    assert describe("simulated", PASSING, RESULTS) == "passed"
    assert describe("simulated", FAILING, RESULTS) == "**failed**"
    assert describe("simulated", IMPOSSIBLE, RESULTS).startswith("cannot run: ")
    assert describe("kubelet", IMPOSSIBLE, RESULTS) == "**failed**"
    assert describe("simulated", "another", RESULTS) == "not run"
    assert describe("simulated", PASSING, None) == "not run"


def test_the_page_has_the_sums_and_a_table_for_each_group() -> None:
    text = render({"simulated": RESULTS, "kubelet": None})
    assert "| simulated nodes | 1 | 1 | 1 | 3 | `0123456789` | v1.36.2 |" in text
    assert f"| {COLUMNS['kubelet']} | not run yet |" in text
    assert text.index("## sig-api-machinery") < text.index("## sig-apps")
    assert r"| Watchers a \| b &lt;c> | **failed** |" in text
    assert "| Job should run a job to completion | passed |" in text


def test_scripted_containers_are_in_no_sum() -> None:
    scripted = Results("f" * 40, "v1.36.2", {PASSING: "passed", IMPOSSIBLE: "passed"})
    before, after = (render({"simulated": RESULTS, "scripted": each}) for each in (None, scripted))
    assert [line for line in after.splitlines() if "| v1.36.2 |" in line] == [
        line for line in before.splitlines() if "| v1.36.2 |" in line
    ]
    assert "2 passed, of which 1 cannot run without scripts; 0 failed, and 0 cannot run." in after
    assert "| Job should run a job to completion | passed | passed |" in after


@pytest.mark.parametrize("column", ["simulated", "scripted"])
def test_no_spec_that_passes_has_a_reason_why_it_cannot_run(column: str) -> None:
    kept = read(column)
    assert kept is not None
    passing = [spec for spec, result in kept.specs.items() if result == "passed"]
    assert passing
    assert [spec for spec in passing if find_reason(column, spec)] == []
