"""Chaos of requests alone, which needs no control plane."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kcm.store import Store
from kcm.testing.clock import FakeClock
from kcm.testing.faults.agenda import Agenda
from kcm.testing.faults.chaos import KINDS, Chaos
from kcm.testing.faults.deeds import ChaosKind, Victims
from kcm.testing.faults.faults import Faults
from kcm.testing.faults.nodes import Nodes
from kcm.testing.faults.pods import Pods

START = datetime(2026, 1, 1, tzinfo=UTC)
REQUESTS: tuple[ChaosKind, ...] = (
    "conflict",
    "busy",
    "error",
    "unavailable",
    "timeout",
    "cut",
    "slow",
    "stale",
)


def no_store() -> Store:
    raise AssertionError("requests fail without the store")


def build(seed: int = 1, rate: float = 6.0, of: tuple[ChaosKind, ...] = REQUESTS) -> Chaos:
    clock = FakeClock()
    faults = Faults(clock, lambda: 1)
    victims = Victims(faults, Nodes((), no_store, clock), Pods(no_store, clock), no_store)
    return Chaos(victims, Agenda(START.timestamp), random.Random(seed), rate=rate, of=of)


def run(chaos: Chaos, minutes: float, every: float = 1.0) -> list[str]:
    """Steps through some minutes, and returns the log."""
    for number in range(int(minutes * 60 / every) + 1):
        chaos.step(START + timedelta(seconds=number * every))
    return [str(entry) for entry in chaos.log]


def test_the_same_seed_has_the_same_happen() -> None:
    first = run(build(), 10)
    assert first == run(build(), 10)
    assert first != run(build(seed=2), 10)


def test_it_does_not_matter_how_often_time_is_looked_at() -> None:
    assert run(build(), 10, every=0.5) == run(build(), 10, every=60.0)


def test_so_many_things_happen_a_minute() -> None:
    assert 500 < len(run(build(rate=6.0), 100, every=60.0)) < 700
    assert 40 < len(run(build(rate=0.6), 100, every=60.0)) < 80


def test_a_step_says_when_the_next_one_is_due() -> None:
    chaos = build()
    due = chaos.step(START)
    assert due > START
    assert chaos.log == []
    chaos.step(due)
    assert [entry.at for entry in chaos.log] == [due]


def test_every_kind_happens_and_what_lasts_ends() -> None:
    chaos = build(rate=60.0)
    run(chaos, 2)
    assert {entry.what for entry in chaos.log} == set(REQUESTS)
    assert all(
        entry.until is not None and timedelta(seconds=5) <= entry.until - entry.at
        for entry in chaos.log
    )
    last = max(entry.until for entry in chaos.log if entry.until is not None)
    assert START + timedelta(minutes=2) < last


def test_everything_is_healed_at_the_end() -> None:
    clock, moment = FakeClock(), START.timestamp()
    agenda = Agenda(lambda: moment)
    faults = Faults(clock, lambda: 1)
    victims = Victims(faults, Nodes((), no_store, clock), Pods(no_store, clock), no_store)
    with Chaos(victims, agenda, random.Random(3), rate=60.0, of=REQUESTS) as chaos:
        agenda.turn(0.0)
        moment += 4
        agenda.turn(0.0)
        assert len(faults.active) == len(chaos.log) > 0
    assert faults.active == []
    moment += 3600
    assert not agenda.turn(0.0).worked


def test_what_has_no_victim_is_told() -> None:
    chaos = build(of=("node-stop",))
    (first, *_) = run(chaos, 1)
    assert first.endswith("node-stop: nothing (there is none)")
    assert str(build()) == "nothing happened yet"


@pytest.mark.parametrize(
    ("rate", "of", "advice"),
    [
        (0.0, KINDS, "use failures per minute, such as 6"),
        (1.0, ("fire",), r"of=\['fire'\] is unknown: use conflict, busy"),
        (1.0, (), "use conflict, busy"),
    ],
)
def test_a_mistake_says_what_to_do(rate: float, of: Any, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        build(rate=rate, of=of)
