"""Schedulers on a real store, without workers: each pass reads what is stored."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from kcm.api.core_v1 import Node, Pod
from kcm.controllers.scheduler import SchedulerController, SchedulerOptions
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.plan import Outcome, Plan
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.testing.views import FakeView

PODS, NODES = Pod.resource, Node.resource


class OneScheduler:
    """A scheduler whose caches are filled by `look`."""

    def __init__(self, store: Store, name: str = "default-scheduler", seed: int = 1) -> None:
        self.store = store
        self.name = name
        options = SchedulerOptions(scheduler_names=name)
        self.controller = SchedulerController(options, random.Random(seed))
        self.executor = PlanExecutor(store)
        self.memory: dict[str, str] = {}
        self.view = FakeView()

    def look(self) -> None:
        """Fills the caches from the store."""
        position = self.store.resource_version()
        objects = [*self.store.list(PODS).items, *self.store.list(NODES).items]
        self.view = FakeView(*objects, now=datetime.now(UTC), memory=self.memory, position=position)

    def plan(self) -> Plan:
        return self.controller.reconcile(self.name, self.view)

    def carry_out(self, plan: Plan) -> Outcome:
        outcome = self.executor.execute(plan, None)
        self.memory = dict(plan.state or {})
        return outcome

    def run(self) -> Outcome:
        """Runs one pass of the scheduler."""
        self.look()
        return self.carry_out(self.plan())


@pytest.fixture
def store(io: RedisIO) -> Store:
    store = Store(io)
    namespaces.ensure(store, "default")
    return store
