"""A container's log: complete, in CRI's format, bounded."""

from __future__ import annotations

import re
from pathlib import Path

from kcm.testing.waiting import until
from tests.integration.kubelet.runtimes import MOST_OF_A_SUPERVISOR, RealRuntime, memory, numbers

LINE = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) [FP] [^\n]*\n", re.DOTALL
)


def choose_logged(real: RealRuntime, container: str) -> Path:
    return Path(real.status(container).log_path)


def test_lines_carry_their_time_stream_and_whether_they_are_whole(real: RealRuntime) -> None:
    container = real.shell(
        "echo out; echo err >&2; printf end; head -c 40000 /dev/zero | tr '\\0' x >&2"
    )
    real.wait_for_end(container)
    data = choose_logged(real, container).read_bytes()
    assert b"".join(match[0] for match in LINE.finditer(data)) == data
    marks = sorted(tuple(line.split(b" ", 3)[1:3]) for line in data.splitlines())
    assert marks == [
        (b"stderr", b"F"), (b"stderr", b"F"), (b"stderr", b"P"), (b"stderr", b"P"),
        (b"stdout", b"F"), (b"stdout", b"F"),
    ]  # fmt: skip


def test_rotation_loses_nothing_and_keeps_so_many_files(tmp_path: Path) -> None:
    real = RealRuntime(tmp_path, container_log_max_size=20_000, container_log_max_files=1000)
    container = real.shell("seq 1 5000")
    real.wait_for_end(container)
    assert numbers(real.output(container)) == list(range(1, 5001))
    log = choose_logged(real, container)
    assert len(list(log.parent.iterdir())) > 5
    real.close()
    assert not log.parent.exists()


def test_a_flood_is_bounded_on_disk_and_in_memory_and_leaves_the_rest_working(
    tmp_path: Path,
) -> None:
    size, files = 1_000_000, 3
    real = RealRuntime(tmp_path, container_log_max_size=size, container_log_max_files=files)
    container = real.start("yes")
    log = choose_logged(real, container)
    until(lambda: len(list(log.parent.iterdir())) == files)
    supervisor = real.supervisor(container)
    for _ in range(5):
        assert real.runtime.exec_sync(container, ["echo", "hi"], 20).stdout == b"hi\n"
        assert memory(supervisor) <= MOST_OF_A_SUPERVISOR
    real.runtime.stop_container(container, 10)
    assert len(list(log.parent.iterdir())) == files
    assert all(file.stat().st_size <= size for file in log.parent.iterdir())
    real.close()
