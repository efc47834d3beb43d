"""Housekeeping: unwanted pods are killed, and desired ones are started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from kcm.api.core_v1 import Pod, PodStatus
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.results import PodSyncResult, ReasonCache, StartResult
from kcm.kubelet.kuberuntime.view import RuntimePod
from kcm.kubelet.loop.cleanup import Cleanup
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.types import FILE, MIRROR_ANNOTATION, SOURCE_ANNOTATION, SyncPodType
from kcm.kubelet.volumes.volumes import Volumes
from tests.unit.kubelet.pod_workers.test_pod_workers import World as Workers
from tests.unit.kubelet.probers import NoProbes
from tests.unit.kubelet.views import pod, sandbox


class Runtime:
    """The pods that run."""

    def __init__(self) -> None:
        self.runtime_pods: dict[str, RuntimePod] = {}
        self.rounds = 0
        self.backoff = self

    def pods(self) -> dict[str, RuntimePod]:
        return self.runtime_pods

    def collect_garbage(self, pods: Any) -> None:
        self.rounds += 1

    def gc(self) -> None:
        """Does nothing, for the back-off."""


class Mirrors:
    def __init__(self) -> None:
        self.deleted: list[str] = []

    def delete(self, mirror: Pod) -> bool:
        self.deleted.append(mirror.name or "")
        return True


class World(Workers):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.runtime = Runtime()
        self.mirrors = Mirrors()
        self.pods = PodManager()
        self.reasons = ReasonCache()
        store: Any = None  # nothing is written here
        self.statuses = StatusManager(
            store, self.pods, self.clock, could_have_running_containers=lambda _: False
        )
        self.volumes = Volumes(folder)
        self.cleanup = Cleanup(
            pods=self.pods,
            states=self.states,
            workers=self.workers,
            statuses=self.statuses,
            runtime_manager=cast("RuntimeManager", self.runtime),  # what is asked of it
            prober=NoProbes(),
            volumes=self.volumes,
            mirrors=cast("MirrorClient", self.mirrors),  # what is asked of it
            reasons=self.reasons,
            clock=self.clock,
            run_in_background=lambda work: work(),
        )

    def runs(self, uid: str) -> None:
        """Adds a running pod to the runtime."""
        self.runtime.runtime_pods[uid] = RuntimePod(uid, uid, "default", (), [sandbox()])


UID = pod().uid or ""


def test_what_runs_and_nobody_knows_is_ended(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.runs("stranger")
    world.cleanup.run()
    world.run("stranger")
    assert world.done == ["orphan"]


def test_a_pod_whose_source_forgot_it_is_ended(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.update(SyncPodType.CREATE)
    world.run()
    world.runs(UID)
    world.cleanup.run()
    world.run()
    assert world.done == ["create", "terminating", "terminated"]


def test_folders_go_with_the_last_that_needs_them(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.pods.add(pod())
    world.update(SyncPodType.CREATE)
    world.run()
    for uid in (UID, "gone", "running"):
        (tmp_path / uid / "volumes").mkdir(parents=True)
    world.runs("running")
    world.cleanup.run()
    assert sorted(folder.name for folder in tmp_path.iterdir()) == sorted([UID, "running"])


def test_statuses_and_reasons_of_pods_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.statuses.set(pod(), PodStatus(phase="Running"))
    world.reasons.update(UID, PodSyncResult([StartResult("main", "CrashLoopBackOff", "wait")]))
    world.cleanup.run()
    assert world.statuses.get(UID) is None
    assert world.reasons.get(UID, "main") is None


def test_mirrors_without_a_static_pod_are_deleted(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.pods.add(pod(metadata={"annotations": {MIRROR_ANNOTATION: "x"}}))
    world.cleanup.run()
    assert world.mirrors.deleted == ["web"]


def test_a_pod_that_was_added_again_while_it_ended_is_started_anew(tmp_path: Path) -> None:
    world = World(tmp_path)
    static = pod(metadata={"annotations": {SOURCE_ANNOTATION: FILE}})
    world.pods.add(static)
    world.update(SyncPodType.CREATE, static)
    world.run()
    world.update(SyncPodType.KILL, static)
    world.update(SyncPodType.CREATE, static)
    world.run()
    world.statuses.set(static, PodStatus(phase="Succeeded"))
    world.cleanup.run()
    world.run()
    assert world.done == ["create", "terminating", "terminated", "create"]


def test_a_pod_that_was_refused_is_not_started(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.pods.add(pod())
    world.statuses.set(pod(), PodStatus(phase="Failed", reason="OutOfcpu"))
    world.cleanup.run()
    world.run()
    assert world.done == []


def test_dead_containers_are_looked_for_each_minute_and_when_pods_are_gone(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    for _ in range(3):
        world.cleanup.run()
    assert world.runtime.rounds == 1
    world.clock.step(60)
    world.cleanup.run()
    assert world.runtime.rounds == 2
    stopped = replace(RuntimePod("gone", "gone", "default"), sandboxes=[sandbox(ready=False)])
    world.runtime.runtime_pods["gone"] = stopped
    world.cleanup.run()
    assert world.runtime.rounds == 3
