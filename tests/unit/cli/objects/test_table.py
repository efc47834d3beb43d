from __future__ import annotations

from kcm.cli.objects.table import TextTable


def test_columns_stand_three_blanks_apart_without_trailing_blanks() -> None:
    lines = TextTable(["NAME", "AGE"]).lines([["web-1", "5s"], ["a", ""]])
    assert lines == ["NAME    AGE", "web-1   5s", "a"]


def test_a_later_batch_keeps_the_widths_of_the_earlier() -> None:
    table = TextTable(["NAME", "AGE"])
    table.lines([["a-long-name", "5s"]])
    assert table.lines([["a", "6s"]], header=False) == ["a             6s"]


def test_no_rows_leave_the_header() -> None:
    assert TextTable(["NAME"]).lines([]) == ["NAME"]
