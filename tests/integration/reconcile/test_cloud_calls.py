"""Tests that a call to a cloud costs its own key only: others go on while it is slow or fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from kcm import errors
from kcm.manager.context.context import ControllerContext, build_context
from kcm.manager.queues import queue_config
from kcm.reconcile.cloudprovider.caller import CloudCaller
from kcm.reconcile.cloudprovider.interface import CloudProvider
from kcm.reconcile.cloudprovider.sim.provider import SimCloud
from kcm.reconcile.cloudprovider.sim.state import SimState
from kcm.reconcile.contract import Controller, View
from kcm.reconcile.plan import Outcome, Plan
from kcm.reconcile.runner import Runner
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.testing.waiting import until


@dataclass
class Cloud:
    """A cloud of a user, whose calls are answered when the test says so."""

    answered: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ask:
    cloud: Cloud
    key: str

    def make(self, cloud: CloudProvider, cluster: str) -> str:
        self.cloud.asked.append(self.key)
        if self.key == "broken":
            raise OSError("no route to the cloud")
        if self.key == "slow":
            assert self.cloud.answered.wait(10)
        return f"{cluster}/{self.key}"


class Asking(Controller):
    """Asks the cloud about each key, and remembers the answer. `quick` asks nothing."""

    name = "asking-controller"
    short_name = "asking"
    remembers = True
    provider = Cloud()

    def reconcile(self, key: str, view: View) -> Plan:
        if key == "quick":
            return Plan(state={"answer": "none"})
        return Plan(calls=[Ask(self.provider, key)], plan_after=self._after)

    def _after(self, outcome: Outcome) -> Plan:
        (answer,) = outcome.answers
        return Plan(error=answer.error, state={"answer": str(answer.value)})


@pytest.fixture
def context(io: RedisIO, settings: Settings) -> Iterator[ControllerContext]:
    Asking.provider = Cloud()
    context = build_context(settings)
    context.selection = replace(context.selection, started=(Asking(),))
    context.cloud = CloudCaller(SimCloud(SimState(io), context.clock), "east")
    context.start()
    yield context
    Asking.provider.answered.set()
    context.shutdown()


@pytest.fixture
def runner(context: ControllerContext) -> Runner:
    (controller,) = context.controllers
    context.queue(controller).configure(queue_config(controller))
    return context.runner(controller)


def remembered(io: RedisIO, key: str) -> Any:
    text = io.execute("HGET", io.keys.memory("asking", key), "answer")
    return text and text.decode()


def test_other_keys_go_on_while_a_call_is_slow(
    context: ControllerContext, runner: Runner, io: RedisIO
) -> None:
    queue = context.queue(context.controllers[0])
    queue.add("slow", "a", "quick", "b")
    runner.run("slow")
    for key, answer in {"quick": "none", "a": "east/a", "b": "east/b"}.items():
        until(partial(lambda key, answer: remembered(io, key) == answer, key, answer), key)
    assert remembered(io, "slow") is None
    until(lambda: queue.stats().running == 1, "only the slow key is in flight")
    until(lambda: [lease.key for lease in context.renewer.held()] == ["slow"], "the others' leases")
    Asking.provider.answered.set()
    until(lambda: remembered(io, "slow") == "east/slow", "the slow answer")
    until(lambda: queue.stats().running == 0, "the end of the slow sync")
    until(lambda: not context.renewer.held(), "no lease is renewed")


def test_a_key_is_not_synced_twice_while_its_call_is_made(
    context: ControllerContext, runner: Runner
) -> None:
    queue = context.queue(context.controllers[0])
    queue.add("slow")
    runner.run("slow")
    until(lambda: Asking.provider.asked == ["slow"], "the call")
    queue.add("slow")
    runner.run("slow")
    assert Asking.provider.asked == ["slow"]
    Asking.provider.answered.set()
    until(lambda: queue.stats().running == 0 and queue.stats().depth == 1, "it waits again")


def test_a_failed_call_is_retried_when_the_controller_says_so(
    context: ControllerContext, runner: Runner
) -> None:
    queue = context.queue(context.controllers[0])
    queue.add("broken", "a")
    runner.run("broken")
    until(lambda: queue.stats().running == 0, "the end of both syncs")
    stats = queue.stats()
    assert (stats.failing, stats.retries) == (1, 1)


def test_what_the_cloud_answers_to_one_that_lost_the_key_is_not_written(
    context: ControllerContext, runner: Runner, io: RedisIO
) -> None:
    queue = context.queue(context.controllers[0])
    queue.add("slow")
    runner.run("slow")
    until(lambda: Asking.provider.asked == ["slow"], "the call")
    io.execute("HSET", io.keys.queue("asking", "running"), "slow", "another")
    Asking.provider.answered.set()
    until(lambda: not context.renewer.held(), "the end of the sync")
    assert remembered(io, "slow") is None


def test_without_a_provider_the_key_fails(context: ControllerContext, io: RedisIO) -> None:
    context.cloud = None
    (controller,) = context.controllers
    queue = context.queue(controller)
    queue.configure(queue_config(controller))
    queue.add("a")
    context.runner(controller).run("a")
    until(lambda: queue.stats().failing == 1, "the failure")


def test_a_flag_names_the_provider(settings: Settings) -> None:
    from kcm.options.manager import ManagerOptions

    context = build_context(settings, ManagerOptions.load({"cloud-provider": "sim"}, {}))
    assert context.cloud is not None
    assert (context.cloud.cloud.name, context.cloud.cluster) == ("sim", "kubernetes")
    with pytest.raises(errors.ConfigurationError, match='unknown cloud provider "aws"'):
        build_context(settings, ManagerOptions.load({"cloud-provider": "aws"}, {}))
