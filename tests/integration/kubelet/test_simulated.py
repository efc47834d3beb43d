"""A whole kubelet with the simulated runtime, whose containers are timers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Node, Pod
from kcm.kubelet.cri import StreamOptions
from kcm.simulation.scripting.scripts import PREFIX
from kcm.testing.waiting import until
from tests.integration.kubelet.node import NODES, RealNode, is_ready, status, waits_for

MAIN = {"name": "main", "image": "nginx:1.27"}


@pytest.fixture(scope="module")
def node() -> Iterator[RealNode]:
    folder = Path(tempfile.mkdtemp(prefix="kcm-node-"))
    node = RealNode(folder, "timers", container_runtime="simulated")
    node.start()
    yield node
    node.close()
    shutil.rmtree(folder, ignore_errors=True)


def run(node: RealNode, name: str, scripts: dict[str, str] | None = None, **main: Any) -> Pod:
    """Creates a pod with one container, which annotations script."""
    notes = {PREFIX + key: text for key, text in (scripts or {}).items()}
    return node.run(name, {**MAIN, **main}, annotations=notes)


def has_events(node: RealNode, pod: Pod, *reasons: str) -> bool:
    """Reports whether the pod has Events with these reasons. They are written after statuses."""
    return set(reasons) <= set(node.reasons(pod))


def restarts(pod: Pod) -> int:
    return sum(one.restart_count for one in pod.status.container_statuses or ())


def test_the_node_says_that_its_containers_are_simulated(node: RealNode) -> None:
    def says() -> bool:
        stored = node.store.get_all([(NODES, "timers")])[0]
        info = stored.status.node_info if isinstance(stored, Node) else None
        return bool(info and info.container_runtime_version.startswith("simulated://"))

    until(says, "the node's status")


def test_a_pod_runs_becomes_ready_and_is_deleted(node: RealNode) -> None:
    probe = {"httpGet": {"port": 80}, "periodSeconds": 1}
    run(node, "web", readinessProbe=probe)
    pod = node.wait_until_pod("web", is_ready)
    assert pod.status.phase == "Running"
    assert (pod.status.pod_ip or "").startswith("10.")
    assert (status(pod).container_id or "").startswith("simulated://")
    until(lambda: has_events(node, pod, "Pulled", "Created", "Started"), "the pod's Events")
    lines = node.log(pod, "main")
    assert lines[0] == "container main started (simulated), attempt 0"
    assert set(lines[1:]) <= {"readiness probe succeeded"}
    node.delete_and_wait("web")


def test_a_container_that_crashes_is_restarted_and_waits_longer_each_time(node: RealNode) -> None:
    run(node, "crash", {"outcome": "crash"})
    pod = node.wait_until_pod("crash", lambda pod: waits_for(pod) == "CrashLoopBackOff")
    last = status(pod).last_state
    assert last is not None
    assert last.terminated is not None
    assert (last.terminated.exit_code, last.terminated.reason) == (1, "Error")
    node.wait_until_pod("crash", lambda pod: restarts(pod) >= 2)
    node.delete_and_wait("crash")


def test_a_pod_that_is_to_end_succeeds(node: RealNode) -> None:
    node.run("job", MAIN, restartPolicy="Never")
    pod = node.wait_until_pod("job", lambda pod: pod.status.phase == "Succeeded")
    ended = status(pod).state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.reason == "Completed"


def test_probes_find_what_the_script_says(node: RealNode) -> None:
    quick = {"exec": {"command": ["check"]}, "periodSeconds": 1, "failureThreshold": 1}
    run(node, "never", {"outcome": "never-ready"}, readinessProbe=quick, livenessProbe=quick)
    run(node, "sick", {"outcome": "unhealthy", "run-for": "1s"}, livenessProbe=quick)
    node.wait_until_pod("sick", lambda pod: restarts(pod) >= 1)
    never = node.wait_until_pod("never", lambda pod: "Unhealthy" in node.reasons(pod))
    assert not is_ready(never)
    assert status(never).restart_count == 0
    node.delete_and_wait("never", "sick")


def test_an_image_that_cannot_be_pulled_is_tried_again_later(node: RealNode) -> None:
    run(node, "gone", {"outcome": "image-pull-error"})
    pod = node.wait_until_pod("gone", lambda pod: waits_for(pod) == "ImagePullBackOff")
    assert pod.status.phase == "Pending"
    until(lambda: has_events(node, pod, "Pulling", "Failed", "BackOff"), "the pod's Events")
    node.delete_and_wait("gone")


def test_what_never_starts_and_what_ignores_term_end_with_their_deletion(node: RealNode) -> None:
    run(node, "slow", {"outcome": "never-start"})
    run(node, "stubborn", {"stop-after": "never"})
    node.wait_until_pod("stubborn", is_ready)
    assert waits_for(node.wait_until_pod("slow", waits_for)) == "ContainerCreating"
    for name in ("slow", "stubborn"):
        node.delete(name, grace=2)
    for name in ("slow", "stubborn"):
        until(partial(node.is_gone, name), f"{name} is still there")


def test_there_is_nothing_to_exec_into(node: RealNode) -> None:
    run(node, "inside")
    pod = node.wait_until_pod("inside", is_ready)
    assert node.process is not None
    runtime = node.process.kubelet.runtime
    container = (status(pod).container_id or "").removeprefix("simulated://")
    with pytest.raises(errors.ContainerRuntimeError, match="nothing runs"):
        runtime.exec(container, ["sh"], StreamOptions(stdout=True))
    node.delete_and_wait("inside")


def test_a_kubelet_of_its_own_follows_a_stages_file(tmp_path: Path) -> None:
    stages = tmp_path / "stages.yaml"
    entry = "{selector: {}, outcome: fail, exitCodes: [3]}"
    kind = "apiVersion: simulation.kcm.dev/v1\nkind: Stages\n"
    stages.write_text(f"{kind}pods: [{entry}]\n")
    folder = Path(tempfile.mkdtemp(prefix="kcm-node-"))
    node = RealNode(folder, "staged")
    try:
        node.spawn("--container-runtime", "simulated", "--stages", str(stages))
        node.run("job", MAIN, restartPolicy="Never")
        pod = node.wait_until_pod("job", lambda pod: pod.status.phase == "Failed")
        ended = status(pod).state
        assert ended is not None
        assert ended.terminated is not None
        assert ended.terminated.exit_code == 3
    finally:
        node.close()
        shutil.rmtree(folder, ignore_errors=True)
