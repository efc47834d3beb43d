"""CRI log lines and files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kcm.kubelet.runtime.process.supervisor.logs import LINE, Lines, LogFile, timestamp

NOW = 1_700_000_000_000_000_042
STAMP = b"2023-11-14T22:13:20.000000042Z"


def parse_lines(*reads: bytes) -> list[tuple[bytes, bytes]]:
    """Returns the tag and the text of each log line."""
    lines = Lines(b"stdout")
    data = b"".join(lines.feed(read, NOW) for read in reads) + lines.finish(NOW)
    parts = [line.split(b" ", 3) for line in data.split(b"\n")[:-1]]
    assert all(part[:2] == [STAMP, b"stdout"] for part in parts)
    return [(part[2], part[3]) for part in parts]


def test_a_timestamp_has_nanoseconds() -> None:
    assert timestamp(NOW) == STAMP


@pytest.mark.parametrize(
    ("reads", "lines"),
    [
        ([], []),
        ([b"a\n"], [(b"F", b"a")]),
        ([b"a\nb\n"], [(b"F", b"a"), (b"F", b"b")]),
        ([b"\n\n"], [(b"F", b""), (b"F", b"")]),
        ([b"a", b"b\nc", b"\n"], [(b"F", b"ab"), (b"F", b"c")]),
        ([b"no end"], [(b"F", b"no end")]),
        ([b"x" * LINE + b"\n"], [(b"F", b"x" * LINE)]),
        ([b"x" * LINE, b"y\n"], [(b"P", b"x" * LINE), (b"F", b"y")]),
        ([b"x" * (LINE - 1), b"yz\n"], [(b"P", b"x" * (LINE - 1) + b"y"), (b"F", b"z")]),
        (
            [b"x" * (LINE - 1), b"y" * LINE, b"\nnext\n"],
            [
                (b"P", b"x" * (LINE - 1) + b"y"),
                (b"F", b"y" * (LINE - 1)),
                (b"F", b"next"),
            ],
        ),
        ([b"x" * LINE, b"x" * LINE], [(b"P", b"x" * LINE), (b"P", b"x" * LINE)]),
    ],
)
def test_lines_are_whole_or_in_parts(reads: list[bytes], lines: list[tuple[bytes, bytes]]) -> None:
    assert parse_lines(*reads) == lines


def test_a_file_is_rotated_between_lines_and_the_oldest_go(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log = LogFile(str(path), max_size=10, max_files=3)
    for number in range(1, 9):
        assert log.write(b"line %d\nand\n" % number) == b""
    log.close()
    rotated = [Path(name) for name in log.list_rotated()]
    assert len(rotated) == 2
    assert all(re.fullmatch(r"0\.log\.\d{8}-\d{6}(\.\d{9})?", file.name) for file in rotated)
    kept = [file.read_bytes() for file in [*rotated, path]]
    assert kept == [b"and\n", b"line 8\n", b"and\n"]


def test_a_line_longer_than_a_file_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log = LogFile(str(path), max_size=4, max_files=2)
    log.write(b"long line\nshort\n")
    log.close()
    (rotated,) = log.list_rotated()
    assert (Path(rotated).read_bytes(), path.read_bytes()) == (b"long line\n", b"short\n")


def test_one_file_alone_starts_again(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log = LogFile(str(path), max_size=4, max_files=1)
    log.write(b"one\ntwo\n")
    log.close()
    assert (log.list_rotated(), path.read_bytes()) == ([], b"two\n")


def test_what_does_not_get_in_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "0.log"
    path.parent.mkdir()
    log = LogFile(str(path), max_size=4, max_files=2)
    log.write(b"one\n")
    path.unlink()
    path.parent.rmdir()
    assert log.write(b"two\n") == b"two\n"
    path.parent.mkdir()
    assert log.write(b"two\n") == b""
    assert path.read_bytes() == b"two\n"
    log.close()


def test_no_path_means_no_log() -> None:
    assert LogFile("", 1, 1).write(b"gone\n") == b""
