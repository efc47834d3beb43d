"""The measurements run and report their results. How fast anything is, is not tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.cases import CASES, select
from bench.harness import ROOT
from bench.table import HEADERS, Row, Sample, render


def row(**changes: Any) -> Row:
    fields: dict[str, Any] = {
        "name": "store.single",
        "what": "create one pod",
        "unit": "ms",
        "measured": Sample.of([3.0, 1.0, 2.0]),
        "baseline": Sample.of([1.0]),
        "baseline_what": "ms, one script",
        "bound": 3.0,
        "target": "3 raw round trips",
    }
    return Row(**(fields | changes))


def test_a_row_is_judged_by_its_median_against_its_bound() -> None:
    assert row().passed
    assert not row(bound=1.9).passed
    assert row(bound=1.9, higher_is_better=True).passed
    assert not row(value=3.5).passed


def test_a_ratio_is_to_the_baselines_median() -> None:
    assert row(baseline=Sample.of([4.0, 1.0, 100.0])).ratio == 0.5


def test_a_verdict_over_a_restless_baseline_is_marked() -> None:
    assert row(baseline=Sample.of([1.0, 1.1, 1.2])).verdict == "pass"
    assert row(baseline=Sample.of([1.0, 2.0, 3.0])).verdict == "pass, noisy"


def test_a_percentile_is_the_value_that_a_share_of_all_does_not_exceed() -> None:
    sample = Sample.of([float(number) for number in range(100)])
    assert sample.percentile(0.99) == 99.0
    assert sample.percentile(0.5) == 50.0


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        Sample.of([])


def test_the_table_shows_each_row_its_verdict_and_its_note() -> None:
    text = render([row(), row(name="watch", bound=0.0, note="why")])
    assert all(header in text for header in HEADERS)
    assert "2 (1 .. 3) ms" in text
    assert "pass" in text
    assert "MISS" in text
    assert "watch: why" in text


def test_a_name_selects_everything_under_it_in_order() -> None:
    assert [case.name for case in select(["store"])] == ["store.batch", "store.single"]
    assert [case.name for case in select(["queue.solo"])] == ["queue.solo"]
    assert len(select([])) == len(CASES)


def test_an_unknown_name_is_answered_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--only", "sto"]) == 2
    assert "store.batch" in capsys.readouterr().err


def test_the_list_names_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    assert all(case.name in shown for case in CASES)


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        (["store", "watch"], {"store.batch.100", "store.single", "watch.p50", "watch.p99"}),
    ],
)
def test_a_quick_run_measures_and_ends_with_a_table(
    cases: list[str], expected: set[str], tmp_path: Path
) -> None:
    only = [f"--only={name}" for name in cases]
    ended = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", *only, "--json", str(tmp_path / "rows.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {row["name"] for row in rows} >= expected
    assert all(row["measured"] > 0 and row["baseline"] > 0 for row in rows)
    assert all(row["name"] in ended.stdout for row in rows)
