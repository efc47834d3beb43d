"""Tests that priority and fairness follow the cluster's objects, in simulated time.

Source: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/borrowing_test.go, Kubernetes 1.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kcm.api.flowcontrol_v1 import FlowDistinguisherMethod, FlowSchema, PriorityLevelConfiguration
from kcm.api.priority_levels import (
    MANDATORY_LEVELS,
    MANDATORY_SCHEMAS,
    SUGGESTED_LEVELS,
    SUGGESTED_SCHEMAS,
)
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import ADMIN, Attributes, User
from kcm.apiserver.flowcontrol.control import FlowControl
from kcm.apiserver.flowcontrol.schemas import Flow
from kcm.apiserver.http_errors import TooManyRequests
from tests.unit.apiserver.auth.caches import FakeHub
from tests.unit.apiserver.flowcontrol.simulated_time import run, run_for

PATH = Attributes("get", path="/foobar")
JANE = User("jane", groups=("system:authenticated",))
DEFAULTS: list[KubeObject] = [
    *MANDATORY_LEVELS.values(), *SUGGESTED_LEVELS, *MANDATORY_SCHEMAS.values(), *SUGGESTED_SCHEMAS,
]  # fmt: skip


def level(name: str, shares: int = 100, **limits: Any) -> PriorityLevelConfiguration:
    queuing = {"queues": 10, "handSize": 2, "queueLengthLimit": 50}
    limited = {
        "nominalConcurrencyShares": shares,
        "limitResponse": {"type": "Queue", "queuing": queuing},
        **limits,
    }
    return PriorityLevelConfiguration.model_validate(
        {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}
    )


def schema(name: str, user: str, precedence: int = 100) -> FlowSchema:
    """Returns a FlowSchema for all paths of a user, with the level of its own name."""
    rule: dict[str, Any] = {
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    spec = {
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": precedence,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [rule],
    }
    return FlowSchema.model_validate({"metadata": {"name": name}, "spec": spec})


@asynccontextmanager
async def seat(
    control: FlowControl, flow: Flow, listed: int, patience: float | None
) -> AsyncIterator[None]:
    """Holds the seats of a request while the context lasts."""
    level = control.find_level(flow)
    held = await level.take(flow, level.width(listed), patience)
    try:
        yield
    finally:
        level.release(held)


def _serve(hub: FakeHub, clients: dict[str, int], seconds: float) -> dict[str, float]:
    """Returns how many requests of each user are served at a time, on average over the last 15
    seconds. `clients` are the clients of each user; each request takes a quarter of a second.
    """
    served = dict.fromkeys(clients, 0)

    async def client(control: FlowControl, user: str, since: float) -> None:
        flow = control.classify(User(user), PATH)
        while True:
            async with seat(control, flow, 0, None):
                await asyncio.sleep(0.25)
                served[user] += asyncio.get_running_loop().time() > since

    async def work() -> dict[str, float]:
        control = FlowControl(hub, 24, CollectorRegistry())
        everybody = [user for user, count in clients.items() for _ in range(count)]
        await run_for(seconds, [client(control, user, seconds - 15) for user in everybody])
        return {user: count * 0.25 / 15 for user, count in served.items()}

    return run(work())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((50, 67), (33, 50), id="what may be lent is limited"),
        pytest.param((50, 33), (67, 50), id="what may be borrowed is limited"),
    ],
)
def test_a_level_borrows_what_another_does_not_need(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    levels = [
        level(name, lendablePercent=lendable, borrowingLimitPercent=borrowed)
        for name, (lendable, borrowed) in (("one", first), ("two", second))
    ]
    hub = FakeHub(*levels, schema("one", "u1"), schema("two", "u2"))
    average = _serve(hub, {"u1": 24, "u2": 6}, 30)
    assert average["u1"] == pytest.approx(15.8, abs=0.3)
    assert average["u2"] == pytest.approx(5.8, abs=0.3)


def test_what_the_objects_say_holds_from_the_next_request_on() -> None:
    async def work() -> None:
        hub = FakeHub(*DEFAULTS)
        control = FlowControl(hub, 600, CollectorRegistry())
        assert control.classify(JANE, PATH).schema == "global-default"
        hub.fill(*DEFAULTS, level("own"), schema("own", "jane"))
        flow = control.classify(JANE, PATH)
        assert (flow.schema, flow.level) == ("own", "own")
        hub.fill(*DEFAULTS)
        async with seat(control, control.classify(JANE, PATH), 0, None):
            assert control.classify(JANE, PATH).level == "global-default"

    run(work())


def test_what_is_stored_need_not_be_valid() -> None:
    queuing = {"queues": 10**9, "handSize": 10**9, "queueLengthLimit": 10}
    wild = level("wild", limitResponse={"type": "Queue", "queuing": queuing})
    strange = schema("wild", "jane")
    method = FlowDistinguisherMethod(type="ByMoon")
    strange = strange.replace(spec=strange.spec.replace(distinguisher_method=method))

    async def work() -> None:
        control = FlowControl(FakeHub(wild, strange), 600, CollectorRegistry())
        flow = control.classify(JANE, PATH)
        assert (flow.level, flow.distinguisher) == ("wild", "")
        async with seat(control, flow, 1000, None):
            pass

    run(work())


def test_until_they_are_loaded_those_of_a_new_cluster_hold() -> None:
    async def work() -> None:
        control = FlowControl(FakeHub(filled=False), 600, CollectorRegistry())
        assert control.classify(JANE, PATH).level == "global-default"
        assert control.classify(ADMIN, PATH).level == "exempt"

    run(work())


def test_long_lists_take_more_seats() -> None:
    registry = CollectorRegistry()

    async def work() -> None:
        control = FlowControl(FakeHub(*DEFAULTS), 600, registry)
        flow = control.classify(JANE, PATH)
        for objects, seats in ((0, 1), (100, 1), (101, 2), (100_000, 8)):  # 49 seats, hands of 6
            async with seat(control, flow, objects, None):
                labels = {"priority_level": "global-default", "flow_schema": "global-default"}
                name = "apiserver_flowcontrol_current_executing_seats"
                assert registry.get_sample_value(name, labels) == seats

    run(work())


@pytest.mark.parametrize(("seats", "refused"), [(1, True), (0, False)])
def test_without_seats_there_is_no_limit(seats: int, refused: bool) -> None:
    async def work() -> bool:
        control = FlowControl(FakeHub(*DEFAULTS), seats, CollectorRegistry())
        flow = control.classify(JANE, PATH)
        async with seat(control, flow, 0, None):
            try:
                async with seat(control, flow, 0, 1.0):
                    return False
            except TooManyRequests:
                return True

    assert run(work()) is refused


def test_who_is_exempt_never_waits_for_a_seat() -> None:
    async def work() -> None:
        control = FlowControl(FakeHub(*DEFAULTS), 1, CollectorRegistry())
        flow = control.classify(ADMIN, PATH)
        async with asyncio.timeout(0), seat(control, flow, 0, None), seat(control, flow, 0, None):
            pass

    run(work())


def test_the_figures_of_each_level_are_shown() -> None:
    registry = CollectorRegistry()

    async def work() -> None:
        control = FlowControl(FakeHub(*DEFAULTS), 600, registry)
        async with seat(control, control.classify(JANE, PATH), 0, None):
            pass

    run(work())
    shown = {
        name: registry.get_sample_value(
            f"apiserver_flowcontrol_{name}_limit_seats", {"priority_level": "node-high"}
        )
        for name in ("nominal", "lower", "upper")
    }
    assert shown == {"nominal": 98, "lower": 74, "upper": 698}
