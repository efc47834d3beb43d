"""A container's log: complete, in CRI's format, bounded."""

from __future__ import annotations

import os
import re
from pathlib import Path

from kcm.testing.waiting import until
from tests.integration.kubelet.box import MOST_OF_A_SUPERVISOR, Box, memory, numbers

LINE = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) [FP] [^\n]*\n", re.DOTALL
)


def log_of(box: Box, container: str) -> Path:
    return Path(box.status(container).log_path)


def test_lines_carry_their_time_stream_and_whether_they_are_whole(box: Box) -> None:
    container = box.shell(
        "echo out; echo err >&2; printf end; head -c 40000 /dev/zero | tr '\\0' x >&2"
    )
    box.end(container)
    data = log_of(box, container).read_bytes()
    assert b"".join(match[0] for match in LINE.finditer(data)) == data
    marks = sorted(tuple(line.split(b" ", 3)[1:3]) for line in data.splitlines())
    assert marks == [
        (b"stderr", b"F"), (b"stderr", b"F"), (b"stderr", b"P"), (b"stderr", b"P"),
        (b"stdout", b"F"), (b"stdout", b"F"),
    ]  # fmt: skip


def test_rotation_loses_nothing_and_keeps_so_many_files(tmp_path: Path) -> None:
    box = Box(tmp_path, container_log_max_size=20_000, container_log_max_files=1000)
    container = box.shell("seq 1 5000")
    box.end(container)
    assert numbers(box.output(container)) == list(range(1, 5001))
    log = log_of(box, container)
    assert len(list(log.parent.iterdir())) > 5
    box.close()
    assert not log.parent.exists()


def test_a_flood_is_bounded_on_disk_and_in_memory_and_leaves_the_rest_working(
    tmp_path: Path,
) -> None:
    size, files = 1_000_000, 3
    box = Box(tmp_path, container_log_max_size=size, container_log_max_files=files)
    container = box.start("yes")
    log = log_of(box, container)
    until(lambda: len(list(log.parent.iterdir())) == files)
    supervisor = box.supervisor(container)
    for _ in range(5):
        assert box.runtime.exec_sync(container, ["echo", "hi"], 20).stdout == b"hi\n"
        assert memory(supervisor) <= MOST_OF_A_SUPERVISOR
    box.runtime.stop_container(container, 10)
    assert len(list(log.parent.iterdir())) == files
    assert all(file.stat().st_size <= size for file in log.parent.iterdir())
    box.close()


def test_who_moves_the_log_away_has_it_opened_again(box: Box) -> None:
    container = box.shell("echo one; read line; echo two", stdin=True)
    box.says(container, "one")
    log = log_of(box, container)
    log.rename(log.with_name("moved"))
    box.runtime.reopen_container_log(container)
    with box.runtime.attach(container, stdin=True) as stream:
        assert stream.stdin is not None
        os.write(stream.stdin, b"\n")
        box.end(container)
    assert box.output(container) == ["two"]
