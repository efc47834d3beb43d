"""Termination messages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kcm.kubelet.files.log_tail import FALLBACK, tail
from kcm.kubelet.runtime.process.termination import message
from kcm.kubelet.runtime.process.users import Identity

ROOT = Identity(0, 0)
HEAD = "2026-01-01T00:00:00.000000000Z stdout"


def read_message(
    file: Path | None, log: Path, policy: str, *, failed: bool, to: Identity = ROOT
) -> str:
    place = (file.parent, file.name) if file is not None else None
    return message(place, to, log, policy, failed=failed)


def test_the_file_is_cut_after_4096_bytes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x" * 5000)
    assert read_message(file, tmp_path / "none", FALLBACK, failed=True) == "x" * 4096


def test_the_log_stands_in_only_on_failure_and_only_if_wanted(tmp_path: Path) -> None:
    file, log = tmp_path / "file", tmp_path / "log"
    file.touch()
    log.write_text(f"{HEAD} F words\n")
    assert read_message(file, log, FALLBACK, failed=True) == "words\n"
    assert read_message(file, log, FALLBACK, failed=False) == ""
    assert read_message(file, log, "File", failed=True) == ""
    assert read_message(None, log, FALLBACK, failed=True) == "words\n"


def test_the_end_of_a_log_is_80_lines_or_2048_bytes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{HEAD} F {number}\n" for number in range(3000)))
    assert tail(log) == "".join(f"{number}\n" for number in range(2920, 3000))
    log.write_text("".join(f"{HEAD} F {'y' * 100}\n" for _ in range(50)))
    assert len(tail(log)) == 2048


def test_parts_of_a_line_are_put_together(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"{HEAD} P one\n{HEAD} F two\ntorn")
    assert tail(log) == "onetwo\n"


def test_a_link_or_a_pipe_in_place_of_the_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "none"):
        assert read_message(tmp_path / name, tmp_path / "log", "File", failed=True) == ""


@pytest.mark.parametrize(
    ("mode", "reader", "words"),
    [
        (0o600, Identity(2001, 2001), ""),
        (0o644, Identity(2001, 2001), "words"),
        (0o640, Identity(2001, os.getegid()), "words"),
        (0o640, Identity(2001, 2001, (os.getegid(),)), "words"),
        (0o604, Identity(2001, os.getegid()), ""),
        (0o600, Identity(os.geteuid(), 2001), "words"),
    ],
)
def test_what_the_containers_user_could_not_read_is_not_read_for_it(
    tmp_path: Path, mode: int, reader: Identity, words: str
) -> None:
    file = tmp_path / "file"
    file.write_text("words")
    file.chmod(mode)
    assert read_message(file, tmp_path / "log", "File", failed=True, to=reader) == words
