"""Carries out plans whole: writes, counts and Events, calls to a cloud, and the plans that follow.

Syncs, periodic passes and the tests of controllers all carry plans out with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from kcm import errors
from kcm.reconcile.cloudprovider.caller import CloudCaller
from kcm.reconcile.consistency import NO_EXPECTATIONS, SyncExpectations
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.metrics import SyncMetrics
from kcm.reconcile.plan import AnyPlan, Event, Limit, Outcome, PassPlan, Plan
from kcm.redisio import Fence, RedisIO
from kcm.redisio.scripts import NO_FENCE
from kcm.store.objects import ObjectStore


class Recorder(Protocol):
    """Records Events."""

    def record(self, event: Event, component: str) -> None:
        """Takes an Event to be written soon. It is dropped if too many wait."""
        ...


@dataclass(frozen=True)
class CarriedPlan:
    """A plan of a sync that was carried out except for its calls to a cloud, and its outcome."""

    plan: Plan
    outcome: Outcome

    @property
    def error(self) -> Exception | None:
        """The error that fails the key, or None."""
        return self.plan.error or self.outcome.error

    @property
    def calls_cloud(self) -> bool:
        """Whether the calls of the plan are to be made next."""
        return self.error is None and bool(self.plan.calls) and self.plan.plan_after is not None

    def next_plan(self) -> Plan | None:
        """Returns the plan that follows without calls to a cloud, or None."""
        if self.error is not None or self.calls_cloud or self.plan.plan_after is None:
            return None
        return self.plan.plan_after(self.outcome)


class PlanCarrier:
    """Carries out the plans of one controller."""

    def __init__(
        self,
        controller: str,
        store: ObjectStore,
        recorder: Recorder,
        metrics: SyncMetrics | None = None,
        cloud: CloudCaller | None = None,
    ) -> None:
        self._controller = controller
        self._executor = PlanExecutor(store)
        self._recorder = recorder
        self._metrics = metrics
        self._cloud = cloud

    def carry_out_pass(self, plan: PassPlan, io: RedisIO, fence: Fence | None) -> Outcome:
        """Carries out the plan of a pass, and returns its outcome. Raises Fenced and Temporary."""
        set_limits(io, plan.limits, fence)
        outcome = self._executor.execute(plan, fence)
        self._record(plan, outcome)
        return outcome

    def carry_out(
        self,
        plan: Plan,
        fence: Fence | None,
        expectations: SyncExpectations = NO_EXPECTATIONS,
        *,
        remember: Callable[[CarriedPlan], None] = lambda carried: None,
    ) -> CarriedPlan:
        """Carries out a plan and those that follow it, up to the first that fails or calls a cloud.

        `remember` is called for each of them, after its writes. Raises Fenced and Temporary.
        """
        while True:
            outcome = self._executor.execute(plan, fence, expectations)
            carried = CarriedPlan(plan, outcome)
            remember(carried)
            self._record(plan, outcome)
            following = carried.next_plan()
            if following is None:
                return carried
            plan = following

    def call_cloud(self, carried: CarriedPlan) -> Plan:
        """Makes the calls of a plan, and returns the plan that follows.

        Raises ConfigurationError without a cloud provider.
        """
        if self._cloud is None:
            raise errors.ConfigurationError(
                f"{self._controller} calls a cloud, but --cloud-provider is not set"
            )
        answers = self._cloud.make(carried.plan.calls)
        assert carried.plan.plan_after is not None  # `calls_cloud` is true
        return carried.plan.plan_after(replace(carried.outcome, answers=answers))

    def _record(self, plan: AnyPlan, outcome: Outcome) -> None:
        derived = plan.events_after(outcome)
        if self._metrics is not None:
            self._metrics.add(plan.counts)
            self._metrics.add(plan.counts_after(outcome))
        for event in (*plan.events, *derived):
            self._recorder.record(event, self._controller)


def set_limits(io: RedisIO, limits: Mapping[str, Limit | None], fence: Fence | None) -> None:
    """Sets the rates of token buckets; None removes a bucket. Raises Fenced and Temporary."""
    args: list[str | float] = []
    for name, limit in limits.items():
        args += (name, limit.per_second, limit.burst) if limit else (name, "", "")
    fenced = fence.args() if fence is not None else NO_FENCE
    reply = io.call("limiter_set", *fenced, *args) if limits else ["OK"]
    if reply[0] == "FENCED":
        raise errors.Fenced
