"""A node whose containers are killed when its kubelet stops, and restarted by the next one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.kubelet.cri import RuntimeContainerState, SandboxState
from kcm.kubelet.runtime.ending import end_node, kill_containers
from tests.integration.kubelet.node import RealNode, is_ready, shell, status
from tests.integration.kubelet.runtimes import RealRuntime, is_alive

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    node = RealNode(tmp_path_factory.mktemp("ending"), end_containers=True)
    yield node
    node.close()


def test_all_containers_end_at_once_and_are_still_known(real: RealRuntime) -> None:
    mild, stubborn = real.shell("exec sleep 1000"), real.shell(STUBBORN, log_path="main/1.log")
    real.wait_for_lines(stubborn, "ready")  # before that, SIGTERM ends it
    pids = [real.status(container).pid for container in (mild, stubborn)]
    assert kill_containers(real.runtime, grace=0.3) == 2
    assert not any(map(is_alive, pids))
    assert [real.status(c).exit_code for c in (mild, stubborn)] == [143, 137]
    assert [s.state for s in real.runtime.list_pod_sandboxes()] == [SandboxState.NOT_READY]
    assert kill_containers(real.runtime) == 0


def test_a_node_without_a_kubelet_is_ended_from_its_files(
    real: RealRuntime, tmp_path: Path
) -> None:
    container = real.shell(STUBBORN)
    root = tmp_path / "node"
    assert end_node(root) == 0
    root.mkdir()
    (root / "runtime").symlink_to(real.options.root)
    assert end_node(root) == 1
    assert real.status(container).state is RuntimeContainerState.EXITED


def test_pods_run_anew_with_the_next_kubelet_but_those_that_never_do(node: RealNode) -> None:
    node.start()
    node.run("again", shell("main", "exec sleep 1000"))
    node.run("once", shell("main", "exec sleep 1000"), restartPolicy="Never")
    node.wait_until_pod("once", is_ready)
    node.wait_until_pod("again", is_ready)
    node.stop()
    assert node.pod("again").status.phase == "Running", "nothing is said of it meanwhile"
    node.start()
    assert node.wait_until_pod("once", lambda pod: pod.status.phase == "Failed")
    again = node.wait_until_pod(
        "again", lambda pod: status(pod).restart_count == 1 and is_ready(pod)
    )
    assert again.status.phase == "Running"
    node.delete_and_wait("once", "again")
