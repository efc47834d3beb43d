"""What containers of the process runtime may use, with control groups and without."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from kcm.kubelet.cri import Resources, RuntimeContainerState
from kcm.kubelet.runtime.process import processes
from kcm.kubelet.runtime.process.cgroups import NONE, remove_tree
from kcm.testing.waiting import until
from tests.integration.kubelet.runtimes import RealRuntime, groups_with

MEBIBYTE = 1024 * 1024


def _pids_groups_of(container: str, real: RealRuntime) -> list[Path]:
    """Returns the control group of the container in the hierarchy that limits processes."""
    groups = groups_with(real.status(container).pid) - groups_with(os.getpid())
    return [group for group in groups if (group / "pids.max").exists()]


class TestLimits:
    @pytest.fixture(autouse=True)
    def _needs_cgroups(self, real: RealRuntime) -> None:
        if real.runtime.status().limits == NONE:
            pytest.skip("this machine has no control group that can be written to")

    def test_memory_over_the_limit_is_the_end(self, real: RealRuntime) -> None:
        container = real.start(
            "python3",
            "-c",
            "x = bytearray(200 << 20)",
            resources=Resources(memory_bytes=32 * MEBIBYTE),
        )
        status = real.wait_for_end(container)
        assert (status.exit_code, status.reason) == (137, "OOMKilled")

    def test_a_running_container_gets_more_memory_and_keeps_it(self, real: RealRuntime) -> None:
        script = "while [ ! -e go ]; do sleep 0.05; done; exec python3 -c 'x = bytearray(99 << 20)'"
        container = real.shell(script, resources=Resources(memory_bytes=32 * MEBIBYTE))
        more = Resources(memory_bytes=256 * MEBIBYTE)
        real.runtime.update_container_resources(container, more)
        real.reopen()
        assert real.runtime.container_status(container).config.resources == more
        real.runtime.exec_sync(container, ["touch", "go"], 10)
        assert real.wait_for_end(container).exit_code == 0

    def test_a_fork_bomb_stays_small_and_can_be_killed(self, real: RealRuntime) -> None:
        bomb = "b() { b | b & b; }; b"
        container = real.start("bash", "-c", bomb, resources=Resources(pids=40))
        real.runtime.stop_container(container, 0)
        assert real.wait_for_end(container).state is RuntimeContainerState.EXITED
        assert not processes.with_variable("KCM_CONTAINER_ID", container)

    def test_a_pods_limit_holds_in_groups_that_are_made_again(self, tmp_path: Path) -> None:
        with closing(RealRuntime(tmp_path / "switched-off", pod_max_pids=100)) as real:
            (group,) = _pids_groups_of(real.start("sleep", "1000"), real)
            real.runtime.stop_container(real.runtime.list_containers()[0].id, 0)
            remove_tree(group.parent)  # as with the machine's end
            (again,) = _pids_groups_of(real.start("sleep", "1000", log_path="main/1.log"), real)
            assert again.parent == group.parent
            assert (again.parent / "pids.max").read_text().strip() == "100"

    def test_the_group_of_a_pod_ends_with_its_last_ready_sandbox(self, real: RealRuntime) -> None:
        (group,) = _pids_groups_of(real.start("sleep", "1000"), real)
        first, real.sandbox = real.sandbox, real.run_sandbox(uid=real.config.uid)
        real.runtime.stop_pod_sandbox(first)
        real.runtime.remove_pod_sandbox(first)
        assert group.parent.exists()
        real.start("true")
        real.runtime.stop_pod_sandbox(real.sandbox)
        assert not group.parents[1].exists(), "nothing of this kubelet is left"

    def test_pods_beside_a_fork_bomb_live_on(self, tmp_path: Path) -> None:
        with closing(RealRuntime(tmp_path / "bounded", pod_max_pids=100)) as real:
            bomb = real.start("bash", "-c", "b() { b | b & b; }; b")
            until(lambda: any("fork" in line for line in real.output(bomb)), "the limit")
            assert real.runtime.container_stats(bomb).processes <= 100
            real.sandbox = real.run_sandbox()
            numbers = "for i in 1 2 3; do sh -c 'echo $0' $i; done"
            other = real.shell(numbers, log_path="other/0.log")
            assert real.wait_for_end(other).exit_code == 0
            assert real.output(other) == ["1", "2", "3"]
        assert not processes.with_variable("KCM_CONTAINER_ID", bomb)


class TestWithoutControlGroups:
    @pytest.fixture
    def real(self, tmp_path: Path) -> RealRuntime:
        return RealRuntime(tmp_path, use_cgroups=False)

    def test_memory_is_limited_per_process(self, real: RealRuntime) -> None:
        container = real.start(
            "python3",
            "-c",
            "x = bytearray(200 << 20)",
            resources=Resources(memory_bytes=64 * MEBIBYTE),
        )
        assert real.wait_for_end(container).exit_code == 1
        assert real.runtime.status().limits == "rlimits"
        real.close()

    def test_use_is_counted_by_processes(self, real: RealRuntime) -> None:
        container = real.shell("python3 -c 'sum(range(3000000))'; echo up; sleep 1000")
        real.wait_for_lines(container, "up")
        until(lambda: real.runtime.container_stats(container).cpu_nanoseconds >= 10_000_000)
        stats = real.runtime.container_stats(container)
        assert stats.memory_working_set_bytes > 100_000
        assert stats.processes == 2
        real.close()
