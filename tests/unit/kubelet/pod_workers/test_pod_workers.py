"""Pod workers: one update at a time, three phases, and no kill is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kcm.api.core_v1 import Pod
from kcm.kubelet.kuberuntime.view import PodView, RuntimePod
from kcm.kubelet.metrics import KubeletMetrics
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pod_workers.pod_sync_status import (
    KillPodOptions,
    PodSyncStatus,
    UpdatePodOptions,
    WorkType,
    effective_grace,
)
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pod_workers.syncer import PodSyncFailed
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import FILE, SOURCE_ANNOTATION, SyncPodType
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.views import NOW, pod

CREATE, UPDATE, SYNC, KILL = (
    SyncPodType.CREATE,
    SyncPodType.UPDATE,
    SyncPodType.SYNC,
    SyncPodType.KILL,
)


class RecordingSyncer:
    """A PodSyncer that records its calls."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.fails = False
        self.retry_after: float | None = None
        self.terminal = False
        self.meanwhile: Callable[[SyncContext], None] = lambda _: None
        self.graces: list[int | None] = []

    def _do(self, what: str, context: SyncContext) -> None:
        self.done.append(what)
        meanwhile, self.meanwhile = self.meanwhile, lambda _: None
        meanwhile(context)
        if self.fails:
            failure = PodSyncFailed("no luck")
            failure.retry_after = self.retry_after
            raise failure

    def sync_pod(self, context: SyncContext, update_type: SyncPodType, *_: Any) -> bool:
        self._do(update_type.value, context)
        context.check()
        return self.terminal

    def sync_terminating_pod(
        self, context: SyncContext, pod: Pod, view: PodView, grace: int | None, status: Any
    ) -> None:
        self.graces.append(grace)
        self._do("terminating", context)

    def sync_terminating_runtime_pod(self, context: SyncContext, pod: RuntimePod) -> None:
        self._do("orphan", context)

    def sync_terminated_pod(self, context: SyncContext, pod: Pod, view: PodView) -> None:
        self._do("terminated", context)


class World:
    """Pod workers that do their work in the test's thread."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOW)
        self.clock.step(100)
        self.syncer = RecordingSyncer()
        self.cache = PodCache()
        self.states = PodStates()
        self.registry = CollectorRegistry()
        self.metrics = KubeletMetrics(self.registry)
        self.workers = PodWorkers(
            self.syncer,
            states=self.states,
            cache=self.cache,
            recorder=KubeletEventRecorder(None, "n1"),
            clock=self.clock,
            metrics=self.metrics,
        )

    def update(self, kind: SyncPodType, asked: Pod | None = None, **more: Any) -> None:
        running = "running_pod" in more
        self.workers.update_pod(
            UpdatePodOptions(kind, pod=asked or (None if running else pod()), **more)
        )

    def run(self, uid: str = "") -> None:
        """Works until no work is left."""
        self.clock.step(1)
        self.cache.update_time(self.clock.monotonic() + 1000)
        for _ in range(20):
            if not self.workers.threads.run(uid or pod().uid or ""):
                return
        raise AssertionError("it never ends")

    @property
    def done(self) -> list[str]:
        return self.syncer.done


def test_a_pod_goes_through_three_phases_and_never_back() -> None:
    world = World()
    world.update(CREATE)
    world.run()
    world.update(SYNC)
    world.run()
    world.update(UPDATE, pod(deleting=NOW))
    world.run()
    world.update(SYNC)
    world.run()
    assert world.done == ["create", "sync", "terminating", "terminated"]
    assert world.states.should_runtime_be_removed(pod().uid or "")


def test_of_updates_that_come_while_it_works_the_last_is_kept() -> None:
    world = World()

    def more(_: SyncContext) -> None:
        for kind in (SYNC, UPDATE):
            world.update(kind)

    world.syncer.meanwhile = more
    world.update(CREATE)
    world.run()
    assert world.done == ["create", "update"]


def test_a_kill_is_never_overwritten() -> None:
    world = World()

    def kill_then_sync(_: SyncContext) -> None:
        world.update(KILL, kill=KillPodOptions(grace_seconds=7))
        world.update(SYNC)

    world.syncer.meanwhile = kill_then_sync
    world.update(CREATE)
    world.run()
    assert world.done == ["create", "terminating", "terminated"]
    assert world.syncer.graces == [7]


def test_a_sync_is_cancelled_when_the_pod_is_to_end() -> None:
    world = World()
    seen: list[bool] = []

    def kill(context: SyncContext) -> None:
        world.update(KILL)
        seen.append(context.cancelled.is_set())

    world.syncer.meanwhile = kill
    world.update(CREATE)
    world.run()
    assert seen == [True]


def test_a_shorter_grace_reaches_the_one_who_waits_for_the_end() -> None:
    world = World()
    heard: list[int] = []
    event = threading.Event()

    def hear(grace: int) -> None:
        heard.append(grace)
        event.set()

    def shorten(context: SyncContext) -> None:
        with context.on_shorter_grace(hear):
            world.update(KILL, kill=KillPodOptions(grace_seconds=3))
            world.update(KILL, kill=KillPodOptions(grace_seconds=30))  # not longer again
            assert event.wait(5)

    world.update(CREATE)
    world.run()
    world.syncer.meanwhile = shorten
    world.update(KILL, kill=KillPodOptions(grace_seconds=10))
    world.run()
    assert heard == [3]


def test_a_pod_that_has_come_to_its_end_terminates() -> None:
    world = World()
    world.syncer.terminal = True
    world.update(CREATE)
    world.run()
    assert world.done == ["create", "terminating", "terminated"]


def test_what_fails_is_tried_again_after_the_back_off() -> None:
    world = World()
    world.syncer.fails = True
    world.update(CREATE)
    world.run()
    assert world.workers.queue.get_work() == []
    world.clock.step(15)
    assert world.workers.queue.get_work() == [pod().uid]


def test_what_may_succeed_soon_is_tried_again_soon() -> None:
    world = World()
    world.syncer.fails, world.syncer.retry_after = True, 0.5
    world.update(CREATE)
    world.run()
    assert world.workers.queue.get_work() == []
    world.clock.step(0.5)
    assert world.workers.queue.get_work() == [pod().uid]


def test_what_went_well_is_looked_at_again_within_a_minute_and_a_half() -> None:
    world = World()
    world.update(CREATE)
    world.run()
    world.clock.step(59)
    assert world.workers.queue.get_work() == []
    world.clock.step(31)
    assert world.workers.queue.get_work() == [pod().uid]


def test_a_termination_that_fails_stays_one() -> None:
    world = World()
    world.update(CREATE)
    world.run()
    world.syncer.fails = True
    world.update(KILL)
    world.run()
    world.syncer.fails = False
    world.update(SYNC)
    world.run()
    assert world.done == ["create", "terminating", "terminating", "terminated"]


def test_who_killed_is_told_when_it_has_ended() -> None:
    world = World()
    calls: list[str] = []
    world.update(CREATE)
    world.update(KILL, kill=KillPodOptions(on_completed=lambda: calls.append("ended")))
    world.run()
    assert calls == ["ended"]


def test_what_is_only_known_from_the_runtime_is_ended() -> None:
    world = World()
    uid = pod().uid or ""
    world.update(KILL, running_pod=RuntimePod(uid, "web", "default"))
    world.run()
    assert world.done == ["orphan"]
    assert world.states.sync_known_pods([]) == {}


def test_what_the_runtime_shows_of_a_known_pod_ends_that_pod() -> None:
    world = World()
    uid = pod().uid or ""
    world.update(CREATE)
    world.run()
    world.update(KILL, running_pod=RuntimePod(uid, "web", "default"))
    world.run()
    assert world.done == ["create", "terminating", "terminated"]


def test_the_same_uid_starts_again_only_after_it_was_forgotten() -> None:
    world = World()
    asked = pod()
    world.update(CREATE)
    world.run()
    world.update(KILL)
    world.update(CREATE)  # added again while it ends
    world.run()
    assert world.done == ["create", "terminating", "terminated"]
    assert world.states.sync_known_pods([asked]) == {}
    world.update(CREATE)
    world.run()
    assert world.done[-1] == "create"


def test_a_pod_that_ended_before_the_kubelet_started_goes_to_its_last_phase() -> None:
    world = World()
    world.update(CREATE, pod(phase="Succeeded"))
    assert world.states.is_known_terminated(pod().uid or "")
    world.run()
    assert world.done == ["terminated"]


def test_of_static_pods_with_one_name_the_second_waits_for_the_firsts_end() -> None:
    world = World()

    def static(uid: str) -> Pod:
        meta = {"name": "static", "uid": uid, "annotations": {SOURCE_ANNOTATION: FILE}}
        return pod(metadata=meta)

    world.update(CREATE, static("one"))
    world.run("one")
    world.update(CREATE, static("two"))
    world.run("two")
    assert world.done == ["create"]
    world.update(KILL, static("one"))
    world.run("one")
    world.clock.step(15)
    assert world.workers.queue.get_work() == ["two"]
    world.update(SYNC, static("two"))
    world.run("two")
    assert world.done == ["create", "terminating", "terminated", "sync"]


def test_known_pods_are_told_apart_from_orphans() -> None:
    world = World()
    world.update(CREATE)
    world.run()
    uid = pod().uid or ""
    known = world.states.sync_known_pods([])
    assert known[uid].orphan
    assert known[uid].state is WorkType.SYNC
    assert not world.states.sync_known_pods([pod()])[uid].orphan


@pytest.mark.parametrize(
    ("before", "deletion", "asked", "spec", "expected"),
    [
        (None, None, None, 30, (30, False)),
        (None, None, 5, 30, (5, False)),
        (None, 10, 5, 30, (5, False)),
        (None, 10, 20, 30, (10, False)),
        (10, 20, None, 30, (10, False)),
        (10, 4, None, 30, (4, True)),
        (10, None, 0, 30, (1, True)),
        (None, 0, None, 30, (1, False)),
        (None, None, None, 0, (1, False)),
    ],
)
def test_the_grace_period_only_shrinks(
    before: int | None,
    deletion: int | None,
    asked: int | None,
    spec: int,
    expected: tuple[int, bool],
) -> None:
    status = PodSyncStatus(NOW, "web_default", grace=before)
    meta = {"deletion_grace_period_seconds": deletion} if deletion is not None else {}
    ending = pod(
        deleting=NOW if deletion is not None else None,
        metadata=meta,
        termination_grace_period_seconds=spec,
    )
    assert effective_grace(status, ending, KillPodOptions(grace_seconds=asked)) == expected
