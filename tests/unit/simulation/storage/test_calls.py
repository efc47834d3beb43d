"""Calls to the simulated CSI driver end when scripts say, and are made again when they fail."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.reconcile.cloudprovider.sim.records import Script
from kcm.simulation.storage.calls import TIMED_OUT, CallKey, Calls

ATTACH: CallKey = ("attach", "csi-1")
NEVER = float("inf")


class Driver:
    """Calls whose scripts and timers are in memory."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.due: dict[CallKey, float] = {}
        self.refusal = ""
        book: Any = self
        self.calls = Calls(book, 0.3, self.due.__setitem__, lambda key: self.refusal)

    def take(self, call: str, *about: str) -> Script | None:
        """Returns the next script; there is one for each call."""
        return self.scripts.pop(0) if self.scripts else None

    def play(self, until: float) -> list[tuple[float, str]]:
        """Goes from timer to timer; returns when calls ended, and with which error."""
        ends: list[tuple[float, str]] = []
        self.calls.begin(ATTACH, ("disk",), 0.0)
        while self.due[ATTACH] <= until:
            now = self.due[ATTACH]
            end = self.calls.advance(ATTACH, now)
            if end is not None:
                ends.append((round(now, 1), end.error))
        return ends


@pytest.mark.parametrize(
    ("scripts", "ends"),
    [
        ([], [(0.3, "")]),
        ([Script(delay=5)], [(5, "")]),
        ([Script(error="no")], [(0, "rpc error: code = Internal desc = no"), (1.3, "")]),
        (
            [Script(delay=2, error="no"), Script(error="still no")],
            [
                (2, "rpc error: code = Internal desc = no"),
                (3, "rpc error: code = Internal desc = still no"),
                (5.3, ""),
            ],
        ),
        # a call that takes longer than the sidecar waits goes on meanwhile
        ([Script(delay=20), Script(delay=20)], [(15, TIMED_OUT), (20, "")]),
        ([Script(delay=3600), Script(delay=3600)], [(15, TIMED_OUT), (31, TIMED_OUT), (33.3, "")]),
    ],
)
def test_a_call_ends(scripts: list[Script], ends: list[tuple[float, str]]) -> None:
    assert Driver(*scripts).play(until=100) == ends


def test_a_call_that_is_refused_is_made_again_until_it_is_not() -> None:
    driver = Driver()
    driver.refusal = "full"
    assert driver.play(until=4) == [(0.3, "full"), (1.6, "full"), (3.9, "full")]
    driver.refusal = ""
    assert driver.play(until=10) == [(8.2, "")]


def test_a_call_that_is_cancelled_does_not_end() -> None:
    driver = Driver()
    driver.calls.begin(ATTACH, (), 0.0)
    driver.calls.keep(set())
    assert driver.due[ATTACH] == NEVER
    assert driver.calls.advance(ATTACH, 1.0) is None


def test_a_call_is_made_once() -> None:
    driver = Driver(Script(delay=5))
    driver.calls.begin(ATTACH, (), 0.0)
    driver.calls.begin(ATTACH, (), 4.0)
    assert driver.due[ATTACH] == 5
