"""Reading logs in CRI's format."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from kcm import errors
from kcm.kubelet.server.logs import LogOptions, LogReader, files_of, tail_start

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def line(second: int, text: str, tag: str = "F") -> str:
    return f"2026-01-01T12:00:{second:02d}.000000000Z stdout {tag} {text}\n"


def write_lines(*numbers: int) -> str:
    return "".join(line(number, f"line {number}") for number in numbers)


def read(path: Path, **options: Any) -> str:
    reader = LogReader(str(path), LogOptions(**options))
    try:
        pieces = []
        while (data := reader.read()) or reader.behind:
            pieces.append(data)
        return b"".join(pieces).decode()
    finally:
        reader.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Returns a log of six lines, in two rotated files and the current one."""
    log = tmp_path / "0.log"
    (tmp_path / "0.log.20260101-120001").write_text(write_lines(0, 1))
    (tmp_path / "0.log.20260101-120003").write_text(write_lines(2, 3))
    (tmp_path / "other.log").write_text(write_lines(9))
    log.write_text(write_lines(4, 5))
    return log


def read_lines(*numbers: int) -> str:
    return "".join(f"line {number}\n" for number in numbers)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, read_lines(0, 1, 2, 3, 4, 5)),
        ({"tail_lines": 0}, ""),
        ({"tail_lines": 1}, read_lines(5)),
        ({"tail_lines": 2}, read_lines(4, 5)),
        ({"tail_lines": 3}, read_lines(3, 4, 5)),
        ({"tail_lines": 5}, read_lines(1, 2, 3, 4, 5)),
        ({"tail_lines": 99}, read_lines(0, 1, 2, 3, 4, 5)),
        ({"since": NOW.replace(second=4)}, read_lines(4, 5)),
        ({"since": NOW.replace(second=59)}, ""),
        ({"since": NOW.replace(second=3), "tail_lines": 2}, read_lines(4, 5)),
        ({"limit_bytes": 9}, "line 0\nli"),
        ({"limit_bytes": 0}, ""),
    ],
)
def test_what_is_wanted_of_a_log_is_read(log: Path, options: dict[str, Any], expected: str) -> None:
    assert read(log, **options) == expected


def test_lines_may_bear_their_time(log: Path) -> None:
    assert read(log, tail_lines=1, timestamps=True) == ("2026-01-01T12:00:05.000000000Z line 5\n")


def test_parts_of_a_long_line_are_put_together(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(line(1, "one", "P") + line(1, " two", "P") + line(2, " three") + line(3, ""))
    assert read(log) == "one two three\n\n"
    assert read(log, timestamps=True).count("2026") == 2


def test_what_is_no_line_of_a_log_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("rubbish\n" + line(1, "fine") + "2026-01-01T12:00:01.000000000Z stdout F cut")
    assert read(log) == "fine\n"


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "0.log") == ""
    assert files_of(str(tmp_path / "nowhere" / "0.log")) == []


def test_a_followed_log_goes_on_over_rotations(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(write_lines(1))
    reader = LogReader(str(log), LogOptions(follow=True))
    assert (reader.read(), reader.read()) == (b"line 1\n", b"")
    with log.open("a") as opened:
        opened.write(line(2, "line 2")[:30])
        opened.flush()
        assert reader.read() == b""  # half a line
        opened.write(line(2, "line 2")[30:])
        opened.flush()
        log.rename(tmp_path / "0.log.20260101-120002")
        log.write_text(write_lines(4))
        opened.write(line(3, "line 3"))
    assert b"".join(reader.read() for _ in range(4)) == read_lines(2, 3, 4).encode()
    reader.close()
    reader.close()


def test_a_follower_goes_on_when_the_file_that_it_reads_was_deleted(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(write_lines(1))
    reader = LogReader(str(log), LogOptions(follow=True))
    assert reader.read() == b"line 1\n"
    log.unlink()
    log.write_text(write_lines(2))
    assert reader.read() == b"line 2\n"
    reader.close()


@pytest.mark.parametrize(
    ("data", "lines", "expected"),
    [
        (b"", 1, (0, 1)),
        (b"a\n", 1, (0, 0)),
        (b"a\nb\n", 1, (2, 0)),
        (b"a\nb", 1, (2, 0)),
        (b"a\nb\n", 2, (0, 0)),
        (b"a\nb\n", 3, (0, 1)),
        (b"a\n", 0, (2, 0)),
        (b"\n\n\n", 2, (1, 0)),
    ],
)
def test_the_tail_of_a_file_begins_somewhere(
    tmp_path: Path, data: bytes, lines: int, expected: tuple[int, int]
) -> None:
    file = tmp_path / "log"
    file.write_bytes(data)
    with file.open("rb") as opened:
        assert tail_start(opened.fileno(), lines) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, LogOptions()),
        ({"follow": "true", "previous": "1", "timestamps": "t"}, LogOptions(True, True, True)),
        ({"tailLines": "3", "limitBytes": "10"}, LogOptions(tail_lines=3, limit_bytes=10)),
        ({"tailLines": "-1"}, LogOptions()),
        ({"sinceSeconds": "60"}, LogOptions(since=NOW.replace(hour=11, minute=59))),
        ({"sinceTime": "2026-01-01T11:00:00Z"}, LogOptions(since=NOW.replace(hour=11))),
    ],
)
def test_options_come_from_the_query(query: dict[str, str], expected: LogOptions) -> None:
    assert LogOptions.of(query, NOW) == expected


@pytest.mark.parametrize("query", [{"tailLines": "x"}, {"sinceTime": "noon"}])
def test_options_that_cannot_be_read_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(errors.BadRequest):
        LogOptions.of(query, NOW)


TERABYTE = 1 << 40


@pytest.mark.parametrize("options", [{}, {"tail_lines": 3}, {"tail_lines": 10**9}])
def test_a_log_that_was_made_a_terabyte_long_is_read_in_no_time(
    tmp_path: Path, options: dict[str, int]
) -> None:
    log = tmp_path / "0.log"
    log.write_text(write_lines(1, 2))
    began = process_time()
    os.truncate(log, TERABYTE)
    with log.open("a") as file:
        file.write("\n" + write_lines(3, 4, 5))
    lines = read(log, **options)
    assert lines == (read_lines(3, 4, 5) if options else read_lines(1, 2, 3, 4, 5))
    assert process_time() - began < 5


def test_a_hole_at_the_end_is_no_line(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(write_lines(1, 2))
    os.truncate(log, TERABYTE)
    assert read(log) == read_lines(1, 2)
    assert read(log, tail_lines=2) == ""


def test_what_is_too_long_for_a_line_is_left_out_and_not_kept(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(write_lines(1) + "x " * 3_000_000 + "\n" + write_lines(2))
    pieces = []
    reader = LogReader(str(log), LogOptions())
    while (data := reader.read()) or reader.behind:
        pieces.append(data)
    reader.close()
    assert b"".join(pieces).decode() == read_lines(1, 2)
