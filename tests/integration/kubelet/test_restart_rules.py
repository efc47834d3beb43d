"""Containers whose rules say what happens after an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.api.core_v1 import Pod
from tests.integration.kubelet.node import RealNode, is_ready, shell, status

IN_42 = {"operator": "In", "values": [42]}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    node = RealNode(tmp_path_factory.mktemp("rules"))
    node.start()
    yield node
    node.close()


def first_exits(mark: Path, action: str) -> dict[str, object]:
    """Returns a container that exits with 42 at its first start, and runs after that."""
    script = f"[ -e {mark} ] && exec sleep 1000; touch {mark}; sleep 0.3; exit 42"
    rule = {"action": action, "exitCodes": IN_42}
    return shell("main", script, restartPolicy="Never", restartPolicyRules=[rule])


def counts(pod: Pod, *names: str) -> list[int]:
    statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    known = {one.name: one.restart_count for one in statuses}
    return [known.get(name, -1) for name in names]


def test_one_container_starts_again(node: RealNode, tmp_path: Path) -> None:
    other = shell("other", "exec sleep 1000")
    node.run("one", first_exits(tmp_path / "one", "Restart"), other, restartPolicy="Never")
    pod = node.wait_until_pod("one", lambda pod: counts(pod, "main") == [1] and is_ready(pod))
    assert counts(pod, "main", "other") == [1, 0]


def test_all_containers_start_again_in_order(node: RealNode, tmp_path: Path) -> None:
    log = tmp_path / "log"
    node.run(
        "all",
        first_exits(tmp_path / "all", "RestartAllContainers"),
        shell("other", f"echo other >> {log}; exec sleep 1000"),
        initContainers=[shell("init", f"echo init >> {log}")],
        restartPolicy="Never",
    )
    pod = node.wait_until_pod(
        "all", lambda pod: counts(pod, "main", "other") == [1, 1] and is_ready(pod)
    )
    assert counts(pod, "init") == [1]
    assert log.read_text().split() == ["init", "other"] * 2
    last = status(pod, "other").last_state
    assert last is not None
    assert last.terminated is not None
    assert last.terminated.reason == "RestartingAllContainers"
    conditions = {one.type: one.status for one in pod.status.conditions or ()}
    assert (conditions["AllContainersRestarting"], pod.status.phase) == ("False", "Running")
    assert pod.status.pod_ip == node.pod("all").status.pod_ip
