"""The usage of containers, from files that look like the kernel's."""

from __future__ import annotations

from pathlib import Path

from kcm.kubelet.runtime.process.usage import ProcessUsage, of_descendants, of_groups


def group(path: Path, **files: str) -> Path:
    path.mkdir()
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)
    return path


def test_version_2_counts_in_one_group(tmp_path: Path) -> None:
    control_group = group(
        tmp_path / "c",
        memory__current="5000\n",
        memory__stat="anon 1\ninactive_file 2000\n",
        cpu__stat="usage_usec 7\nuser_usec 1\n",
        cgroup__procs="1\n2\n",
    )
    assert of_groups([control_group]) == ProcessUsage(
        cpu=7000, usage=5000, working_set=3000, processes=2
    )


def test_version_1_counts_in_several(tmp_path: Path) -> None:
    memory = group(
        tmp_path / "m",
        memory__usage_in_bytes="5000\n",
        memory__stat="inactive_file 1\ntotal_inactive_file 6000\n",
        cgroup__procs="1\n",
    )
    cpu = group(tmp_path / "c", cpuacct__usage="123\n", cgroup__procs="1\n")
    assert of_groups([cpu, memory]) == ProcessUsage(cpu=123, usage=5000, working_set=0, processes=1)


def test_without_groups_nothing_is_known(tmp_path: Path) -> None:
    assert of_groups([tmp_path / "none"]) is None


def test_processes_that_ended_still_count() -> None:
    seen = {10: (1, 5, 0, 40), 20: (10, 6, 3, 2), 30: (20, 7, 1, 0), 99: (1, 8, 100, 0)}
    usage = of_descendants(10, seen)
    assert (usage.processes, usage.cpu) == (2, 46 * 10_000_000)
