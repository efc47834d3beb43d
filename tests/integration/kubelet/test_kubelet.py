"""Pods on a real node: a kubelet, a server and processes of this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import ConfigMap, Node, Pod
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.kubelet.runtime.process import processes
from kcm.testing.waiting import until
from tests.integration.kubelet.node import RealNode, is_ready, shell, status, waits_for

FOREVER = "trap 'exit 0' TERM; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def node() -> Iterator[RealNode]:
    # A short path: sockets of containers are in it.
    folder = Path(tempfile.mkdtemp(prefix="kcm-node-"))
    node = RealNode(folder)
    node.start()
    yield node
    node.close()
    shutil.rmtree(folder, ignore_errors=True)


def process_of(pod_uid: str, node: RealNode) -> int:
    """Returns the pid of the main process of a pod's running container."""
    assert node.process is not None
    running = node.process.kubelet.runtime_manager.look_at(pod_uid).list_running()
    runtime = node.process.kubelet.runtime
    return runtime.container_status(running[0].id).pid


def test_a_bound_pod_runs_and_becomes_ready_after_its_init_container_and_sidecar(
    node: RealNode,
) -> None:
    shared = {"name": "notes", "mountPath": "/notes"}
    write = 'echo {0} >> "$KCM_ROOT/notes/order"'
    pod = node.run(
        "web",
        shell("main", f"{write.format('main')}; {FOREVER}", volumeMounts=[shared]),
        initContainers=[
            shell("init", f"{write.format('init')}; sleep 0.2", volumeMounts=[shared]),
            shell(
                "side",
                f"{write.format('side')}; {FOREVER}",
                volumeMounts=[shared],
                restartPolicy="Always",
            ),
        ],
        volumes=[{"name": "notes", "emptyDir": {}}],
    )
    ready = node.wait_until_pod("web", is_ready)
    assert ready.status.phase == "Running"
    assert ready.status.pod_ip
    assert status(ready, "init").ready
    assert status(ready, "side").started
    volume = "volumes/kubernetes.io~empty-dir/notes/order"
    order = node.options.pods_dir / (pod.uid or "") / volume
    # A container may be ready before it has written.
    until(lambda: order.read_text().count("\n") == 3, "the words of all three")
    assert order.read_text().split() == ["init", "side", "main"]
    until(lambda: node.reasons(pod).count("Started") == 3)
    node.delete_and_wait("web")
    assert not (node.options.pods_dir / (pod.uid or "")).exists()


def test_the_node_registers_and_is_ready(node: RealNode) -> None:
    wanted = [
        (Node.resource, node.name),
        (Lease.resource, f"kube-node-lease/{node.name}"),
    ]
    until(lambda: all(node.store.get_all(wanted)))
    registered, _ = node.store.get_all(wanted)
    assert isinstance(registered, Node)
    info = registered.status.node_info
    assert info is not None
    assert info.container_runtime_version.startswith("process://")


def test_a_crash_loop_backs_off_and_keeps_the_last_end(node: RealNode) -> None:
    node.run("crash", shell("main", "echo out; exit 7"))
    crashing = node.wait_until_pod("crash", lambda pod: waits_for(pod) == "CrashLoopBackOff")
    last = status(crashing).last_state
    assert last is not None
    assert last.terminated is not None
    assert last.terminated.exit_code == 7
    crashing = node.wait_until_pod("crash", lambda pod: status(pod).restart_count >= 3)
    assert crashing.status.phase == "Running"
    assert "BackOff" in node.reasons(crashing)
    node.delete_and_wait("crash")


@dataclass(frozen=True)
class End:
    """A way in which a pod ends."""

    name: str
    policy: str
    script: str
    phase: str
    least_restarts: int = 0


ONCE = 'test -e "$KCM_ROOT/../../../once" || { touch "$KCM_ROOT/../../../once"; exit 1; }'


@pytest.mark.parametrize(
    "end",
    [
        End("done", "Never", "exit 0", "Succeeded"),
        End("failed", "Never", "exit 3", "Failed"),
        End("again", "OnFailure", ONCE, "Succeeded", 1),
    ],
    ids=lambda end: end.name,
)
def test_pods_come_to_an_end_by_their_restart_policy(node: RealNode, end: End) -> None:
    node.run(end.name, shell("main", end.script), restartPolicy=end.policy)
    ended = node.wait_until_pod(end.name, lambda pod: pod.status.phase in ("Succeeded", "Failed"))
    assert ended.status.phase == end.phase
    assert status(ended).restart_count >= end.least_restarts
    assert not is_ready(ended)
    node.delete_and_wait(end.name)


def test_what_ignores_sigterm_is_killed_after_its_grace(node: RealNode) -> None:
    pod = node.run(
        "stubborn",
        shell("main", "trap '' TERM; echo up; while :; do sleep 0.05; done"),
        terminationGracePeriodSeconds=2,
    )
    node.wait_until_pod("stubborn", is_ready)
    until(lambda: node.log(pod, "main") == ["up"])
    pid = process_of(pod.uid or "", node)
    node.delete("stubborn")
    assert node.pod("stubborn").deleting
    until(lambda: node.is_gone("stubborn"))
    assert processes.stat(pid) is None


def test_hooks_run_after_the_start_and_before_the_end(node: RealNode) -> None:
    place = node.folder / "hooks"
    place.mkdir()
    script = f"trap 'touch {place}/term; exit 0' TERM; while :; do sleep 0.05; done"
    before = f"test ! -e {place}/term && touch {place}/pre"
    hooks = {
        "postStart": {"exec": {"command": ["touch", f"{place}/started"]}},
        "preStop": {"exec": {"command": ["sh", "-c", before]}},
    }
    node.run("hooks", shell("main", script, lifecycle=hooks))
    node.wait_until_pod("hooks", is_ready)
    assert (place / "started").exists()
    node.delete_and_wait("hooks")
    assert sorted(file.name for file in place.iterdir()) == ["pre", "started", "term"]


def test_an_active_deadline_fails_the_pod(node: RealNode) -> None:
    node.run("late", shell("main", FOREVER), activeDeadlineSeconds=1)
    failed = node.wait_until_pod("late", lambda pod: pod.status.phase == "Failed")
    assert failed.status.reason == "DeadlineExceeded"
    node.delete_and_wait("late")


def test_a_pod_that_the_node_refuses_fails_with_a_reason(node: RealNode) -> None:
    node.run("refused", shell("main", FOREVER), nodeSelector={"disk": "fast"})
    refused = node.wait_until_pod("refused", lambda pod: pod.status.phase == "Failed")
    assert refused.status.reason == "NodeAffinity"
    assert (refused.status.message or "").startswith("Pod was rejected: ")
    node.delete_and_wait("refused")


def test_a_missing_config_map_is_told_and_waited_for(node: RealNode) -> None:
    source = {"configMapKeyRef": {"name": "words", "key": "greeting"}}
    pod = node.run(
        "configured",
        shell(
            "main", f"echo $GREETING; {FOREVER}", env=[{"name": "GREETING", "valueFrom": source}]
        ),
    )
    node.wait_until_pod("configured", lambda pod: waits_for(pod) == "CreateContainerConfigError")
    meta = ObjectMeta(name="words", namespace="default")
    node.store.create(ConfigMap(metadata=meta, data={"greeting": "hello"}))
    node.wait_until_pod("configured", is_ready)
    until(lambda: node.log(pod, "main") == ["hello"])
    node.delete_and_wait("configured")


def test_static_pods_follow_their_files(node: RealNode) -> None:
    file = node.manifests / "web.yaml"
    name = f"static-{node.name}"

    def write(word: str) -> None:
        container = shell("main", f"echo {word}; {FOREVER}")
        spec = {"containers": [container], "terminationGracePeriodSeconds": 2}
        temporary = node.folder / "new.yaml"
        temporary.write_text(json.dumps({"metadata": {"name": "static"}, "spec": spec}))
        temporary.replace(file)

    write("one")
    (node.manifests / "broken.yaml").write_text("kind: Pod\nspec: [")
    first = node.wait_until_pod(name, is_ready)
    assert first.metadata.owner_references
    node.delete(name, grace=0)  # the mirror comes back, the pod runs on
    again = node.wait_until_pod(name, lambda pod: pod.uid != first.uid and is_ready(pod))
    assert status(again).container_id == status(first).container_id
    write("two")

    def is_changed(pod: Pod) -> bool:
        """Reports whether the pod is new. The old mirror may show the new status for a moment."""
        shown = [one.annotations["kubernetes.io/config.hash"] for one in (first, pod)]
        return shown[0] != shown[1] and status(pod).container_id != status(first).container_id

    node.wait_until_pod(name, lambda pod: is_ready(pod) and is_changed(pod))
    file.unlink()
    until(lambda: node.is_gone(name), "the mirror stays")
    (node.manifests / "broken.yaml").unlink()


def test_while_redis_is_away_pods_are_restarted_and_statuses_catch_up(node: RealNode) -> None:
    pod = node.run("steady", shell("main", f"echo up; {FOREVER}"))
    node.wait_until_pod("steady", is_ready)
    uid = pod.uid or ""
    old = process_of(uid, node)
    node.server.stop()
    try:
        os.kill(old, signal.SIGKILL)
        until(lambda: node.log(pod, "main") == ["up", "up"], "not restarted while cut off")
    finally:
        node.server.start()
    node.wait_until_pod("steady", lambda pod: status(pod).restart_count == 1 and is_ready(pod))
    node.delete_and_wait("steady")


def test_a_killed_kubelet_finds_its_pods_again(node: RealNode) -> None:
    count = "i=0; trap 'exit 0' TERM; while :; do i=$((i+1)); echo $i; sleep 0.02; done"
    node.stop()
    try:
        node.spawn()
        pod = node.run("lasting", shell("main", count))
        before = node.wait_until_pod("lasting", is_ready)
        node.kill(signal.SIGKILL)
        node.run("meanwhile", shell("main", FOREVER))
        lines = len(node.log(pod, "main"))
        node.spawn()
        node.wait_until_pod("meanwhile", is_ready)
        until(lambda: len(node.log(pod, "main")) > lines)
        after = node.pod("lasting")
        assert status(after).container_id == status(before).container_id
        assert status(after).restart_count == 0
        numbers = [int(line) for line in node.log(pod, "main")]
        assert numbers == list(range(1, len(numbers) + 1))
    finally:
        node.kill(signal.SIGTERM)
        node.start()
    node.delete_and_wait("lasting", "meanwhile")


def test_nothing_is_left_of_pods_that_are_gone(node: RealNode) -> None:
    """Runs last in this module, so that the pods of all other tests are gone."""
    assert node.process is not None
    runtime = node.process.kubelet.runtime

    def list_leftovers() -> list[str]:
        folders = [node.options.pods_dir, node.options.logs_dir]
        folders += [node.options.runtime_dir / name for name in ("containers", "sandboxes")]
        return [str(path) for folder in folders if folder.is_dir() for path in folder.iterdir()]

    until(
        lambda: not runtime.list_pod_sandboxes() and not list_leftovers(),
        "something is list_leftovers",
    )


def test_a_hook_that_hangs_does_not_keep_its_pod(node: RealNode) -> None:
    mark = f"{node.folder}/hook"
    hook = f"echo $$ > {mark}; setsid sleep 1000 & sleep 1000"
    post_start = {"postStart": {"exec": {"command": ["sh", "-c", hook]}}}
    pod = node.run("hangs", shell("main", FOREVER, lifecycle=post_start))
    until(lambda: os.path.exists(mark) and Path(mark).read_text().strip())
    assert node.process is not None
    (container,) = node.process.kubelet.runtime_manager.look_at(
        pod.metadata.uid or ""
    ).list_running()
    node.delete_and_wait("hangs")
    assert processes.with_variable("KCM_CONTAINER_ID", container.id) == []
    node.run("next", shell("main", FOREVER))
    node.wait_until_pod("next", is_ready)
    node.delete_and_wait("next")


@pytest.mark.parametrize(
    ("context", "flag"),
    [
        ({"runAsUser": 612_001}, "--allowed-users"),
        ({"runAsGroup": 42}, "--allowed-groups"),
        ({"supplementalGroups": [42]}, "--allowed-groups"),
    ],
)
def test_a_user_or_group_that_the_node_does_not_allow_is_told_with_its_flag(
    node: RealNode, context: dict[str, Any], flag: str
) -> None:
    name = f"foreign-{next(iter(context)).lower()}"
    node.run(name, shell("main", FOREVER), securityContext=context)
    pod = node.wait_until_pod(name, lambda pod: waits_for(pod) == "CreateContainerConfigError")
    waiting = status(pod).state
    assert waiting is not None
    assert waiting.waiting is not None
    assert flag in (waiting.waiting.message or "")
    node.delete_and_wait(name)
