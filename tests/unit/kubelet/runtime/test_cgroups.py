"""Control groups, in folders that look like the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm.kubelet.cri import Resources
from kcm.kubelet.runtime.process.cgroups import NONE, V1, V2, Cgroups, detect, shares, weight

RESOURCES = Resources(memory_bytes=1000, cpu_shares=1024, cpu_quota=50_000, pids=20)


def v1(root: Path, *controllers: str) -> tuple[str, str]:
    """Returns the texts of /proc/self/mounts and /proc/self/cgroup for these controllers."""
    for controller in controllers:
        (root / controller / "mine").mkdir(parents=True)
    mounts = "".join(f"cgroup {root}/{name} cgroup rw,{name} 0 0\n" for name in controllers)
    own = "".join(f"{at}:{name}:/mine\n" for at, name in enumerate(controllers, 1))
    return mounts, own


def test_version_1_is_used_below_the_own_place(tmp_path: Path) -> None:
    mounts, own = v1(tmp_path, "memory", "pids", "cpu", "blkio")
    cgroups = detect("kcm-x", mounts, own)
    assert cgroups.kind == V1
    assert cgroups.bases == {
        name: tmp_path / name / "mine" / "kcm-x" for name in ("memory", "pids", "cpu")
    }
    assert not any(base.exists() for base in cgroups.bases.values())


def test_limits_are_written_where_their_controller_is(tmp_path: Path) -> None:
    mounts, own = v1(tmp_path, "memory", "cpu")
    groups = detect("kcm-x", mounts, own)
    paths = groups.make("pod1/c1", RESOURCES)
    assert paths == groups.paths("pod1/c1")
    cpu, memory = paths
    assert (memory / "memory.limit_in_bytes").read_text() == "1000"
    texts = {file.name: file.read_text() for file in cpu.iterdir()}
    assert texts == {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "50000",
        "cpu.shares": "1024",
    }


@pytest.mark.parametrize("controllers", [(), ("pids",), ("cpu", "cpuset")])
def test_without_a_memory_controller_there_are_only_rlimits(
    tmp_path: Path, controllers: tuple[str, ...]
) -> None:
    assert detect("kcm-x", *v1(tmp_path, *controllers)) == Cgroups(NONE, {})


def test_version_2_without_the_controllers_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    mounts = f"cgroup2 {tmp_path} cgroup2 rw 0 0\n"
    assert detect("kcm-x", mounts, "0::/mine\n").kind == NONE
    assert not (tmp_path / "mine" / "kcm-x").exists()


def test_version_2_writes_one_group_and_hands_controllers_on(tmp_path: Path) -> None:
    base = tmp_path / "kcm-x"
    groups = Cgroups(V2, dict.fromkeys(("memory", "pids", "cpu"), base))
    (path,) = groups.make("pod1/c1", RESOURCES)
    assert {file.name: file.read_text() for file in path.iterdir()} == {
        "memory.max": "1000",
        "memory.oom.group": "1",
        "pids.max": "20",
        "cpu.max": "50000 100000",
        "cpu.weight": "39",
    }
    for parent in (base, base / "pod1"):
        assert (parent / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


@pytest.mark.parametrize(
    ("kind", "file", "together"),
    [(V1, "cpu.shares", "2050"), (V2, "cpu.weight", "77")],  # 39 + 39 + 1, less what 2 groups have
)
def test_a_group_of_groups_has_their_shares_together(
    tmp_path: Path, kind: str, file: str, together: str
) -> None:
    groups = Cgroups(kind, {"cpu": tmp_path})
    for name, part in (("a", 1024), ("b", 1024), ("c", 2)):
        groups.make(f"class/{name}", Resources(cpu_shares=part))
    groups.share_out("class")
    assert (tmp_path / "class" / file).read_text() == together


def test_weights_become_shares_and_back() -> None:
    assert [weight(shares(each)) for each in (1, 39, 10_000)] == [1, 39, 10_000]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (V1, {"memory.limit_in_bytes": "-1", "cpu.cfs_period_us": "100000",
              "cpu.cfs_quota_us": "-1"}),
        (V2, {"memory.max": "max", "memory.oom.group": "1", "cpu.max": "max 100000"}),
    ],
)  # fmt: skip
def test_a_limit_below_0_is_taken_away(tmp_path: Path, kind: str, texts: dict[str, str]) -> None:
    (tmp_path / "pod").mkdir()
    groups = Cgroups(kind, dict.fromkeys(("memory", "cpu"), tmp_path))
    groups.update("pod", Resources(memory_bytes=-1, cpu_quota=-1))
    assert {file.name: file.read_text() for file in (tmp_path / "pod").iterdir()} == texts


def test_removing_takes_the_group_and_empty_ones_above(tmp_path: Path) -> None:
    base = tmp_path / "memory" / "kcm-x"
    groups = Cgroups(V1, {"memory": base})
    groups.make("pod1/c1", Resources())
    groups.make("pod2", Resources())
    groups.remove("pod1/c1")
    assert not (base / "pod1").exists()
    groups.remove("pod2")
    assert not base.exists()
    groups.remove("pod2")


@pytest.mark.parametrize(("shares", "expected"), [(0, 1), (2, 1), (1024, 39), (262_144, 10_000)])
def test_shares_become_weights(shares: int, expected: int) -> None:
    assert weight(shares) == expected
