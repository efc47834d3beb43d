"""PodGC and real nodes: pods of a deleted node are deleted after the quarantine, not before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kcm.clock import RealClock
from kcm.controllers.podgc import PodGCController
from kcm.manager.context.context import build_context
from kcm.manager.ticks.runner import TickRunner
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from tests.integration.nodes.conftest import NODES, PODS
from tests.new_objects import make_namespaces, node, pod


class SteppedClock(RealClock):
    """A wall clock that stands still until it is stepped. Threads wait in real time."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def step(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def test_pods_of_a_node_that_is_gone_go_after_40_seconds(io: RedisIO, settings: Settings) -> None:
    store, clock = Store(io), SteppedClock()
    make_namespaces(store, "default")
    store.create(node("n1"))
    store.create(node("n2"))
    for name, on in (("a", "n1"), ("b", "n2")):
        store.create(pod(name, node=on, phase="Running"))
    context = build_context(settings)
    context.selection = replace(context.selection, started=(PodGCController(),))
    context.start()
    context.clock = clock
    ticks = TickRunner(context)
    try:
        store.delete(NODES, "n1")
        for number, left in enumerate((2, 2, 1)):
            assert ticks.run("podgc", 1000.0 + 20 * number)
            assert store.count(PODS) == left
            clock.step(20)
    finally:
        context.shutdown()


def test_a_node_that_comes_back_in_time_keeps_its_pods(io: RedisIO, settings: Settings) -> None:
    store, clock = Store(io), SteppedClock()
    make_namespaces(store, "default")
    store.create(pod("a", node="n1", phase="Running"))
    context = build_context(settings)
    context.selection = replace(context.selection, started=(PodGCController(),))
    context.start()
    context.clock = clock
    ticks = TickRunner(context)
    try:
        for number in range(4):
            assert ticks.run("podgc", 1000.0 + 20 * number)
            clock.step(20)
            if number == 1:
                store.create(node("n1"))
        assert store.count(PODS) == 1
    finally:
        context.shutdown()
