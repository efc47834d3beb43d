"""Tests who gets the seats of a priority level, in simulated time.

Source: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset/queueset_test.go,
Kubernetes 1.36.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kcm.api.flowcontrol_v1 import PriorityLevelConfiguration
from kcm.apiserver.flowcontrol.level import PriorityLevel
from kcm.apiserver.flowcontrol.metrics import FlowMetrics
from kcm.apiserver.flowcontrol.schemas import Flow
from kcm.apiserver.flowcontrol.shares import SeatLimits
from kcm.apiserver.http_errors import TooManyRequests
from tests.unit.apiserver.flowcontrol.simulated_time import run, run_for

QUEUES = {"queues": 16, "handSize": 1, "queueLengthLimit": 50}


def flow(name: str) -> Flow:
    return Flow("schema", name, "level", b"")


def level(seats: int, registry: CollectorRegistry, queuing: dict[str, int] | None) -> PriorityLevel:
    response: dict[str, Any] = {"type": "Queue", "queuing": queuing}
    limited = {"limitResponse": response if queuing else {"type": "Reject"}}
    configuration = PriorityLevelConfiguration.model_validate(
        {"metadata": {"name": "level"}, "spec": {"type": "Limited", "limited": limited}}
    )
    limits = SeatLimits(seats, seats, seats)
    return PriorityLevel(configuration, limits, FlowMetrics(registry), 0.0)


@asynccontextmanager
async def seat(
    one: PriorityLevel, flow: Flow, seats: int, patience: float | None
) -> AsyncIterator[None]:
    """Holds seats while the context lasts."""
    held = await one.take(flow, seats, patience)
    try:
        yield
    finally:
        one.release(held)


async def _client(one: PriorityLevel, name: str, takes: float, served: Counter[str]) -> None:
    """Sends one request after the other, which take so many seconds each."""
    while True:
        async with seat(one, flow(name), 1, None):
            await asyncio.sleep(takes)
            served[name] += 1


def _serve(clients: dict[str, tuple[int, float]], seats: int, seconds: float) -> Counter[str]:
    """Returns how many requests of each flow end in so many seconds. `clients` are the number of
    clients of a flow, and what its requests take.
    """
    served: Counter[str] = Counter()

    async def work() -> None:
        one = level(seats, CollectorRegistry(), QUEUES)
        await run_for(
            seconds,
            [
                _client(one, name, takes, served)
                for name, (count, takes) in clients.items()
                for _ in range(count)
            ],
        )
        assert one.executing == 0
        async with asyncio.timeout(0), seat(one, flow("last"), seats, None):
            pass

    run(work())
    return served


def test_flows_get_the_same_however_many_clients_they_have() -> None:
    served = _serve({"many": (40, 0.1), "few": (4, 0.1)}, seats=4, seconds=100)
    assert sum(served.values()) == pytest.approx(4000, rel=0.01)
    assert served["few"] == pytest.approx(served["many"], rel=0.05)


def test_a_flow_whose_requests_take_longer_gets_fewer() -> None:
    served = _serve({"slow": (20, 0.4), "brief": (20, 0.1)}, seats=4, seconds=200)
    assert served["brief"] == pytest.approx(4 * served["slow"], rel=0.1)


def test_a_flow_that_wants_less_than_its_part_is_not_held_up() -> None:
    served = _serve({"flood": (40, 0.1), "single": (1, 0.1)}, seats=4, seconds=100)
    assert served["single"] >= 500  # in turns it waits for one seat, 0.1 s at most, and has it


def test_a_request_waits_its_time_and_is_refused_then() -> None:
    registry = CollectorRegistry()

    async def work() -> float:
        one = level(1, registry, QUEUES)
        async with seat(one, flow("first"), 1, None):
            began = asyncio.get_running_loop().time()
            with pytest.raises(TooManyRequests):
                async with seat(one, flow("second"), 1, 15.0):
                    pass
            return asyncio.get_running_loop().time() - began

    assert run(work()) == pytest.approx(15.0)
    assert _refused(registry, "time-out") == 1
    assert _sample(registry, "current_inqueue_requests") == 0
    assert _sample(registry, "current_executing_requests") == 0


def test_a_full_queue_refuses_and_others_do_not() -> None:
    registry = CollectorRegistry()

    async def work() -> None:
        one = level(1, registry, {"queues": 1, "handSize": 1, "queueLengthLimit": 2})
        async with seat(one, flow("first"), 1, None):
            waiting = [asyncio.create_task(_once(one, "second")) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(TooManyRequests):
                await _once(one, "third")
        await asyncio.gather(*waiting)

    run(work())
    assert _refused(registry, "queue-full") == 1
    assert _sample(registry, "dispatched_requests_total") == 3


def test_a_level_without_queues_refuses_what_does_not_fit() -> None:
    registry = CollectorRegistry()

    async def work() -> None:
        one = level(2, registry, None)
        async with seat(one, flow("a"), 1, None), seat(one, flow("a"), 1, None):
            with pytest.raises(TooManyRequests):
                await _once(one, "a")
        await _once(one, "a")

    run(work())
    assert _refused(registry, "concurrency-limit") == 1


def test_who_stops_waiting_leaves_the_seat_to_others() -> None:
    registry = CollectorRegistry()

    async def work() -> None:
        one = level(1, registry, QUEUES)
        async with seat(one, flow("first"), 1, None):
            gone = asyncio.create_task(_once(one, "gone"))
            last = asyncio.create_task(_once(one, "last"))
            await asyncio.sleep(0)
            gone.cancel()
        for _ in range(3):  # it was given the seat, or another was, before it is told
            await asyncio.sleep(0)
        await last
        assert gone.cancelled()
        assert one.executing == 0

    run(work())
    assert _refused(registry, "cancelled") == 1


def test_a_request_that_wants_more_than_there_is_is_served_alone() -> None:
    async def work() -> None:
        one = level(2, CollectorRegistry(), QUEUES)
        async with seat(one, flow("wide"), 10, None):
            assert one.executing == 10
            narrow = asyncio.create_task(_once(one, "narrow"))
            await asyncio.sleep(0)
            assert not narrow.done()
        await narrow

    run(work())


def test_seats_that_are_lent_are_used_at_once() -> None:
    async def work() -> None:
        one = level(1, CollectorRegistry(), QUEUES)
        async with seat(one, flow("first"), 1, None):
            second = asyncio.create_task(_once(one, "second"))
            await asyncio.sleep(0)
            assert not second.done()
            one.set_current(2)
            await second

    run(work())


async def _once(one: PriorityLevel, name: str) -> None:
    async with seat(one, flow(name), 1, None):
        await asyncio.sleep(0)


def _sample(registry: CollectorRegistry, name: str) -> float | None:
    """Returns the sum of a metric over all of its labels."""
    full = f"apiserver_flowcontrol_{name}"
    samples = (s for family in registry.collect() for s in family.samples if s.name == full)
    return sum(sample.value for sample in samples)


def _refused(registry: CollectorRegistry, reason: str) -> float | None:
    labels = {"priority_level": "level", "flow_schema": "schema", "reason": reason}
    return registry.get_sample_value("apiserver_flowcontrol_rejected_requests_total", labels)
