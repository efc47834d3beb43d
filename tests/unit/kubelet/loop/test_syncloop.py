"""The sync loop: which handlers the items of each channel are given to."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from kcm.kubelet.channels import Channels
from kcm.kubelet.config.podconfig import SourcesReady
from kcm.kubelet.loop.pleg import EventType, PodLifecycleEvent, RuntimeState
from kcm.kubelet.loop.syncloop import HOUSEKEEPING, MONITOR_THRESHOLD, SyncLoop, Ticker
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.prober.state import ProbeUpdate, ProbeVerdict
from kcm.kubelet.types import API, Operation, PodUpdate
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.views import pod


class Handler:
    """Records the names of the methods that are called."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.due: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name == "get_pods_to_sync":
            return lambda: self.due
        return lambda *_: self.done.append(name)


class State:
    def __init__(self) -> None:
        self.faults: list[str] = []

    def errors(self) -> list[str]:
        return self.faults


class Ready:
    def __init__(self) -> None:
        self.ready = True

    def add_source(self, source: str) -> None:
        """Does nothing."""

    def all_ready(self) -> bool:
        return self.ready


class Statuses:
    """Records the probe results that it is given."""

    def __init__(self, noted: list[tuple[str, bool]]) -> None:
        self._noted = noted

    def set_container_ready(self, uid: str, container_id: str, ready: bool) -> None:
        self._noted.append(("ready", ready))

    def set_container_started(self, uid: str, container_id: str, started: bool) -> None:
        self._noted.append(("started", started))


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.channels = Channels(self.clock)
        self.handler: Any = Handler()
        self.pods = PodManager()
        self.ready = Ready()
        self.state = State()
        self.noted: list[tuple[str, bool]] = []
        statuses: Any = Statuses(self.noted)
        self.loop = SyncLoop(
            self.channels,
            self.handler,
            pods=self.pods,
            statuses=statuses,
            sources=cast("SourcesReady", self.ready),  # what is asked of it
            runtime_state=cast("RuntimeState", self.state),  # what is asked of it
            clock=self.clock,
        )

    def take(self, channel: str, item: Any) -> list[str]:
        """Puts an item into a channel; returns the names of the handlers that were called."""
        self.handler.done = []
        self.channels.channel(channel).offer(item)
        assert self.loop.iterate(0)
        calls: list[str] = self.handler.done
        return calls


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Operation.ADD, ["handle_pod_additions"]),
        (Operation.UPDATE, ["handle_pod_updates"]),
        (Operation.REMOVE, ["handle_pod_removes"]),
        (Operation.RECONCILE, ["handle_pod_reconcile"]),
        (Operation.DELETE, ["handle_pod_updates"]),
        (Operation.RESTORE, ["handle_pod_additions"]),
        (Operation.SET, []),
    ],
)
def test_what_sources_say_goes_to_its_handler(op: Operation, expected: list[str]) -> None:
    assert World().take("config", PodUpdate(op, API, [pod()])) == expected


@pytest.mark.parametrize(
    ("kind", "known", "expected"),
    [
        (EventType.CONTAINER_STARTED, True, ["handle_pod_syncs"]),
        (EventType.CONTAINER_DIED, True, ["handle_pod_syncs", "clean_up_containers_in_pod"]),
        (EventType.CONTAINER_DIED, False, ["clean_up_containers_in_pod"]),
        (EventType.CONTAINER_REMOVED, True, []),
    ],
)
def test_what_happened_to_containers_syncs_known_pods(
    kind: EventType, known: bool, expected: list[str]
) -> None:
    world = World()
    if known:
        world.pods.add(pod())
    assert world.take("pleg", PodLifecycleEvent(pod().uid or "", kind, "c")) == expected


@pytest.mark.parametrize(
    ("channel", "success", "expected", "noted"),
    [
        ("liveness", True, [], []),
        ("liveness", False, ["handle_pod_syncs"], []),
        ("readiness", True, ["handle_pod_syncs"], [("ready", True)]),
        ("readiness", False, ["handle_pod_syncs"], [("ready", False)]),
        ("startup", True, ["handle_pod_syncs"], [("started", True)]),
        ("startup", False, ["handle_pod_syncs"], [("started", False)]),
    ],
)
def test_probes_are_noted_and_sync_the_pod(
    channel: str, success: bool, expected: list[str], noted: list[tuple[str, bool]]
) -> None:
    world = World()
    world.pods.add(pod())
    verdict = ProbeVerdict.SUCCESS if success else ProbeVerdict.FAILURE
    assert world.take(channel, ProbeUpdate("c", verdict, pod().uid or "")) == expected
    assert world.noted == noted


def test_each_second_pods_that_are_due_are_synced() -> None:
    world = World()
    assert world.take("sync", 1.0) == []
    world.handler.due = [pod()]
    assert world.take("sync", 1.0) == ["handle_pod_syncs"]


def test_nothing_is_cleaned_up_before_every_source_has_spoken() -> None:
    world = World()
    world.ready.ready = False
    assert world.take("housekeeping", 1.0) == []
    world.ready.ready = True
    assert world.take("housekeeping", 1.0) == ["handle_pod_cleanups"]


def test_a_handler_that_fails_does_not_end_the_loop() -> None:
    world = World()
    assert world.take("config", "nonsense") == []
    assert world.take("sync", 1.0) == []


def test_while_the_runtime_is_not_well_the_loop_waits_longer_and_longer() -> None:
    world = World()
    waits: list[float] = []
    stop = threading.Event()

    def wait(event: threading.Event, timeout: float) -> bool:
        waits.append(timeout)
        if len(waits) == 8:
            world.state.faults = []
            world.channels.channel("sync").offer(1.0)
            world.handler.due = [pod()]
            world.handler.handle_pod_syncs = lambda _: stop.set()
        return False

    world.clock.wait = wait  # type: ignore[method-assign] # what the loop waits for is the point
    world.state.faults = ["container runtime is down"]
    world.loop.run(stop)
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    world.clock.step(MONITOR_THRESHOLD + 1)
    assert "has not run" in world.loop.check_health()


def test_housekeeping_keeps_its_own_time_only_while_nobody_calls() -> None:
    clock = FakeClock()
    channels = Channels(clock)
    ticker = Ticker(channels, clock)
    local: list[int] = []
    stop = threading.Event()
    second = iter(range(1, 16))

    def wait(event: threading.Event, timeout: float) -> bool:
        now = next(second)
        clock.step(1)
        while (taken := channels.select(0)) is not None:
            if taken[0] == HOUSEKEEPING:
                local.append(now - 1)
        if now <= 6 and now % 2 == 0:
            ticker.request_housekeeping()
            channels.select(0)
            local.clear()
        return now == 15

    clock.wait = wait  # type: ignore[method-assign] # the ticks are the point
    ticker.run(stop)
    assert local == [9, 11, 13]
