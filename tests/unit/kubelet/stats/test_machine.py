from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from kcm.kubelet.stats.machine import measure_machine, measure_tree

AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_machine_has_more_than_is_used(tmp_path: Path) -> None:
    machine = measure_machine(tmp_path, AT)
    assert 0 < machine.memory_available < machine.memory
    assert 0 < machine.disk_available <= machine.disk
    assert 0 < machine.working_set < machine.memory
    assert 0 <= machine.pids <= machine.max_pids
    assert machine.cpu > 0


def test_the_size_of_a_tree_counts_what_is_in_it_and_follows_no_link(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "deep", outside):
        folder.mkdir(parents=True)
    (inside / "deep" / "file").write_bytes(b"x" * 100_000)
    (outside / "file").write_bytes(b"x" * 500_000)
    (inside / "link").symlink_to(outside)
    size, files = measure_tree(inside)
    assert 100_000 <= size < 200_000
    assert files == 3
    assert measure_tree(tmp_path / "nowhere") == (0, 0)
