"""The comparison of two commits: what it says about their rows."""

from __future__ import annotations

from typing import Any

import pytest

from bench.compare import NEW, OLD, Compared, compare, main, render_comparison, turns
from bench.table import Sample


def reported(name: str, measured: float, **fields: Any) -> dict[str, Any]:
    return {"name": name, "unit": "ms", "measured": measured, **fields}


def compared(old: list[float], new: list[float], *, higher_is_better: bool = False) -> Compared:
    return Compared("store.single", "ms", Sample.of(old), Sample.of(new), higher_is_better)


def test_the_ratio_is_that_of_the_medians() -> None:
    (row,) = compare(
        [[reported("a", 1.0)], [reported("a", 2.0)], [reported("a", 90.0)]],
        [[reported("a", 3.0)], [reported("a", 5.0)], [reported("a", 4.0)]],
    )
    assert row.ratio == 2.0


def test_rounds_that_do_not_overlap_are_better_or_worse() -> None:
    assert compared([3.0, 4.0], [1.0, 2.0]).verdict == "better"
    assert compared([1.0, 2.0], [3.0, 4.0]).verdict == "worse"
    assert compared([1.0, 2.0], [3.0, 4.0], higher_is_better=True).verdict == "better"
    assert compared([3.0, 4.0], [1.0, 2.0], higher_is_better=True).verdict == "worse"


def test_rounds_that_overlap_and_single_rounds_show_no_difference() -> None:
    assert compared([1.0, 3.0], [2.0, 4.0]).verdict == ""
    assert compared([1.0], [9.0]).verdict == ""


def test_a_row_of_one_side_only_has_no_ratio_and_says_so() -> None:
    rows = compare([[reported("gone", 1.0)]], [[reported("made", 1.0)]])
    assert [(row.name, row.ratio, row.verdict) for row in rows] == [
        ("made", None, "only new"),
        ("gone", None, "only old"),
    ]


def test_a_row_that_was_zero_has_no_ratio() -> None:
    assert compared([0.0, 0.0], [1.0, 1.0]).ratio is None


def test_whether_more_is_better_comes_from_the_report() -> None:
    rounds = [[reported("rate", 1.0, higher_is_better=True)]]
    assert compare(rounds, rounds)[0].higher_is_better


def test_each_side_begins_every_other_round() -> None:
    assert list(turns(3)) == [OLD, NEW, NEW, OLD, OLD, NEW]


def test_the_table_shows_both_sides_and_their_ratio() -> None:
    text = render_comparison([compared([4.0, 4.0], [1.0, 1.0])])
    assert "store.single" in text
    assert "0.25" in text
    assert "better" in text


def test_an_unknown_row_is_refused_before_anything_is_checked_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["HEAD", "--only", "sto"]) == 2
    assert "store.batch" in capsys.readouterr().err


def test_rounds_are_at_least_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["HEAD", "--rounds", "0"])
    assert "1 or more" in capsys.readouterr().err
