"""Killing containers: hooks first, sidecars last, never less than two seconds."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.handlers import ExecAction, Lifecycle, LifecycleHandler, Probe
from kcm.clock import RealClock
from kcm.kubelet.cri import ExecResult, RuntimeContainer, RuntimeContainerState
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.kuberuntime.killing import ContainerKiller, ContainerTermination
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.sync_context import SyncContext
from tests.unit.kubelet.views import NOW, pod


class Runtime:
    """Records the commands it runs and the containers it stops, with their grace periods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.done: list[str] = []

    def exec_sync(self, container_id: str, command: Sequence[str], timeout: float) -> ExecResult:
        with self._lock:
            self.done.append(f"{container_id} runs {command[0]}")
        return ExecResult(b"", b"", 1)

    def stop_container(self, container_id: str, grace: float) -> None:
        with self._lock:
            self.done.append(f"{container_id} {round(grace)}")


def build_container(name: str, **annotations: str) -> RuntimeContainer:
    return RuntimeContainer(
        name, "box", name, 0, "x", RuntimeContainerState.RUNNING, NOW, {}, annotations
    )


def kill(endings: Sequence[ContainerTermination], grace: int | None = None) -> list[str]:
    runtime: Any = Runtime()
    ContainerKiller(runtime, KubeletEventRecorder(None, "n1"), RealClock()).kill_all(
        endings, grace, SyncContext()
    )
    calls: list[str] = runtime.done
    return calls


def test_sidecars_end_last_in_reverse_order() -> None:
    asked = pod("main", "other", init="one* two* done")
    names = ("one", "two", "main", "other")
    done = kill([ContainerTermination(build_container(name), asked) for name in names], 20)
    assert sorted(done[:2]) == ["main 20", "other 20"]
    assert [line.split()[0] for line in done[2:]] == ["two", "one"]


@pytest.mark.parametrize(
    ("asked", "grace", "reason", "expected"),
    [
        (pod(), None, "", 30),
        (pod(termination_grace_period_seconds=7), None, "", 7),
        (pod(termination_grace_period_seconds=7), 3, "", 3),
        (pod(termination_grace_period_seconds=0), None, "", 2),
        (pod(deleting=NOW, metadata={"deletion_grace_period_seconds": 5}), None, "", 5),
        (pod(), 0, "", 2),
    ],
)
def test_how_long_a_container_has(
    asked: Pod, grace: int | None, reason: str, expected: int
) -> None:
    assert kill([ContainerTermination(build_container("main"), asked, reason=reason)], grace) == [
        f"main {expected}"
    ]


def test_a_probe_may_bring_a_grace_period_of_its_own() -> None:
    asked = pod()
    probe = Probe(termination_grace_period_seconds=4)
    main = asked.spec.containers[0].replace(liveness_probe=probe)
    asked = asked.with_spec(asked.spec.replace(containers=[main]))
    assert kill([ContainerTermination(build_container("main"), asked, reason="LivenessProbe")]) == [
        "main 4"
    ]
    assert kill([ContainerTermination(build_container("main"), asked)]) == ["main 30"]


def test_the_hook_runs_before_even_when_it_fails() -> None:
    asked = pod()
    hook = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=["farewell"])))
    main = asked.spec.containers[0].replace(lifecycle=hook)
    asked = asked.with_spec(asked.spec.replace(containers=[main]))
    assert kill([ContainerTermination(build_container("main"), asked)]) == [
        "main runs farewell",
        "main 30",
    ]


def test_of_a_pod_that_nobody_knows_the_container_itself_says_enough() -> None:
    noted = {
        labels.POD_GRACE: "9",
        labels.PRE_STOP: '{"exec":{"command":["farewell"]}}',
    }
    assert kill([ContainerTermination(build_container("main", **noted))]) == [
        "main runs farewell",
        "main 9",
    ]
