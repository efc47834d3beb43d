"""PLEG: events between two relists; the cache has the new state before events are sent."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from kcm import errors
from kcm.kubelet.channels import Channels
from kcm.kubelet.cri import RuntimeContainer, RuntimeContainerState
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.view import PodView, RuntimePod
from kcm.kubelet.loop.pleg import GenericPLEG, compute_events
from kcm.kubelet.metrics import KubeletMetrics
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.views import NOW


def build_runtime_pod(state: str) -> RuntimePod | None:
    """Returns a pod with one container in this state, or None for ""."""
    if not state:
        return None
    container = RuntimeContainer("c", "box", "main", 0, "x", RuntimeContainerState(state), NOW)
    return RuntimePod("u", "web", "default", [container])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "RUNNING", ["ContainerStarted"]),
        ("CREATED", "RUNNING", ["ContainerStarted"]),
        ("RUNNING", "EXITED", ["ContainerDied"]),
        ("", "EXITED", ["ContainerDied"]),
        ("RUNNING", "RUNNING", []),
        ("RUNNING", "", ["ContainerDied", "ContainerRemoved"]),
        ("EXITED", "", ["ContainerRemoved"]),
        ("RUNNING", "UNKNOWN", ["ContainerChanged"]),
        ("", "CREATED", ["ContainerChanged"]),
    ],
)
def test_what_happened_to_a_container(old: str, new: str, expected: list[str]) -> None:
    assert [
        one.type.value
        for one in compute_events("u", build_runtime_pod(old), build_runtime_pod(new))
    ] == expected


class Runtime:
    """A runtime manager with the two methods that PLEG calls."""

    def __init__(self) -> None:
        self.pod: RuntimePod | None = None
        self.broken = False
        self.looks = 0

    def pods(self) -> dict[str, RuntimePod]:
        if self.broken:
            raise errors.ContainerRuntimeError("cannot list")
        return {"u": self.pod} if self.pod else {}

    def view(self, pod: RuntimePod) -> PodView:
        self.looks += 1
        if pod.name == "unreadable":
            raise errors.ContainerRuntimeError("cannot look")
        return PodView(pod.uid, pod.name)


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.clock.step(10)
        self.runtime = Runtime()
        self.channels = Channels(self.clock)
        self.cache = PodCache()
        self.pleg = GenericPLEG(
            cast("RuntimeManager", self.runtime),  # PLEG asks these two questions
            cache=self.cache,
            channel=self.channels.channel("pleg", 1),
            clock=self.clock,
            metrics=KubeletMetrics(CollectorRegistry()),
        )

    def events(self) -> list[str]:
        self.clock.step(1)
        self.pleg.relist()
        taken = self.channels.select(0)
        return [taken[1].type.value] if taken else []


def test_a_pod_is_looked_at_when_something_happened_to_it() -> None:
    world = World()
    world.runtime.pod = build_runtime_pod("RUNNING")
    assert world.events() == ["ContainerStarted"]
    assert world.cache.get("u").name == "web"
    assert world.events() == []
    assert world.runtime.looks == 1


def test_a_pod_is_looked_at_once_if_that_is_requested() -> None:
    world = World()
    world.runtime.pod = build_runtime_pod("RUNNING")
    world.events()
    world.pleg.request_relist("u")
    world.runtime.broken = True
    world.events()
    world.runtime.broken = False
    assert world.events() == world.events() == []
    assert world.runtime.looks == 2


def test_what_could_not_be_looked_at_is_looked_at_again() -> None:
    world = World()
    pod = build_runtime_pod("RUNNING")
    assert pod is not None
    world.runtime.pod = replace(pod, name="unreadable")
    assert world.events() == []
    with pytest.raises(errors.ContainerRuntimeError):
        world.cache.get("u")
    world.runtime.pod = pod
    assert world.events() == ["ContainerStarted"]


@pytest.mark.parametrize(
    ("seconds", "starts"),
    [(0.1, [10.0, 10.4, 10.8, 11.2]), (0.0, [10.0] * 4), (2.0, [10.0, 13.0, 16.0, 19.0])],
)
def test_requests_without_end_take_at_most_a_quarter_of_the_time(
    seconds: float, starts: list[float]
) -> None:
    world, stop, at = World(), threading.Event(), list[float]()

    def list_pods() -> dict[str, RuntimePod]:
        at.append(round(world.clock.monotonic(), 3))
        world.clock.step(seconds)
        world.pleg.request_relist()
        if len(at) == len(starts):
            stop.set()
        return {}

    world.runtime.pods = list_pods  # type: ignore[method-assign]
    world.pleg.run(stop)
    assert at == starts


def test_without_a_word_from_the_runtime_it_is_listed_each_second() -> None:
    world, stop, at = World(), threading.Event(), list[float]()

    def list_pods() -> dict[str, RuntimePod]:
        at.append(round(world.clock.monotonic(), 3))
        world.clock.step(0.05)
        if len(at) == 3:
            stop.set()
        return {}

    world.runtime.pods = list_pods  # type: ignore[method-assign]
    world.pleg.run(stop)
    assert at == [10.0, 11.05, 12.1]


def test_three_minutes_without_a_look_are_sick() -> None:
    world = World()
    world.events()
    world.runtime.broken = True
    world.clock.step(179)
    world.pleg.relist()
    assert world.pleg.check_health() == ""
    world.clock.step(2)
    assert "pleg was last seen active" in world.pleg.check_health()
    world.runtime.broken = False
    world.pleg.relist()
    assert world.pleg.check_health() == ""


def test_events_that_find_the_channel_full_are_counted() -> None:
    world = World()
    world.runtime.pod = build_runtime_pod("RUNNING")
    world.pleg.relist()
    world.runtime.pod = None
    world.pleg.relist()
    assert world.pleg.discarded == 2
