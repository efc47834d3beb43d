"""Zones that go dark and come back: states and rates as upstream's table says, real processes.

When a node was marked and tainted is taken from the watch log, as it is written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Node
from kcm.cli.evictions import read_evictions
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import PATIENCE, until
from tests.scenarios.test_silent_nodes import BEAT, GRACE, NODES, PERIOD, Fleet, Launch, launch

__all__ = ["launch"]

pytestmark = pytest.mark.scenario

RATE = 0.5  # nodes a second, of a Fleet
ENOUGH = 1 + round(2 / RATE / PERIOD)  # passes in which RATE would bring two taints
NORMAL, PARTIAL, FULL = "Normal", "PartialDisruption", "FullDisruption"


class Follower(threading.Thread):
    """When each node was tainted NoExecute, and when it was freed again, in seconds."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(daemon=True)
        self._io = RedisIO(Settings(redis_url=fleet.cluster.server.url))
        self._io.attach()
        self._store = Store(self._io)
        self._position = self._store.resource_version()
        self._stop_it = threading.Event()
        self.began = time.monotonic()
        self.tainted: dict[str, float] = {}
        self.freed: dict[str, float] = {}

    def __enter__(self) -> Follower:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_it.set()
        self.join(PATIENCE)
        self._io.close()

    def run(self) -> None:
        while not self._stop_it.is_set():
            try:
                changes = self._store.read_changes({NODES: self._position}, 200)
            except errors.Temporary:
                continue
            self._position = changes.positions.get(NODES, self._position)
            for entry in changes.entries:
                self._see(codec.decode(entry.raw, NODES), time.monotonic() - self.began)

    def _see(self, node: object, at: float) -> None:
        assert isinstance(node, Node)
        if any(taint.effect == "NoExecute" for taint in node.spec.taints or ()):
            self.tainted.setdefault(node.name, at)
            self.freed.pop(node.name, None)
        elif node.name in self.tainted:
            self.freed.setdefault(node.name, at)

    def kept_rate(self, rate: float, names: Iterable[str] = ()) -> bool:
        """Whether these nodes, or all, were tainted no faster than at this rate.

        A pass that was late for the first and in time for the last brings them nearer.
        """
        times = sorted(self.tainted[name] for name in names or self.tainted)
        return times[-1] - times[0] > 0.65 * (len(times) - 1) / rate


def zones(fleet: Fleet) -> dict[str, tuple[str, float]]:
    """State and rate of each zone, as `kcm status` shows them."""
    return {z.zone: (z.state, z.rate) for z in read_evictions(fleet.cluster.io, 0.0)}


@pytest.mark.long
def test_one_of_three_zones_dark_is_given_up_at_the_normal_rate_and_freed(launch: Launch) -> None:
    fleet = launch("aaaa", "bbbb", "cccc")
    assert zones(fleet) == dict.fromkeys("abc", (NORMAL, RATE))
    with Follower(fleet) as seen:
        fleet.go_dark("b")
        until(lambda: len(seen.tainted) == 4, "the taints")
        assert zones(fleet) == {"a": (NORMAL, RATE), "b": (FULL, RATE), "c": (NORMAL, RATE)}
        assert seen.tainted.keys() == {"b0", "b1", "b2", "b3"}
        assert min(seen.tainted.values()) > GRACE - BEAT
        assert seen.kept_rate(RATE), seen.tainted
        fleet.come_back()
        until(lambda: len(seen.freed) == 4, "the end of the taints")
        until(lambda: zones(fleet)["b"] == (NORMAL, RATE), "the zone's return")


@pytest.mark.long
def test_most_of_a_small_zone_dark_is_left_alone(launch: Launch) -> None:
    fleet = launch("aaaaa", "bbbbb")
    with Follower(fleet) as seen:
        fleet.go_dark("b0", "b1", "b2")
        until(lambda: zones(fleet)["b"] == (PARTIAL, 0.0), "the state")
        # The heart renews one lease after the other: the first may have been marked, and
        # tainted, a pass before the last.
        fleet.wait_for_passes(2)
        early = dict(seen.tainted)
        assert len(early) < 3
        fleet.wait_for_passes(ENOUGH)
        assert zones(fleet) == {"a": (NORMAL, RATE), "b": (PARTIAL, 0.0)}
        assert seen.tainted == early
        fleet.go_dark("b0")
        until(lambda: zones(fleet)["b"] == (NORMAL, RATE), "the return")
        until(lambda: "b0" in seen.tainted, "the only taint")
        assert seen.tainted.keys() == {"b0"} | early.keys()


@pytest.mark.long
def test_most_of_a_large_zone_dark_is_given_up_at_the_secondary_rate(launch: Launch) -> None:
    slow = 0.25
    fleet = launch(
        "aaaaa",
        "bbbbbbb",
        KCM_LARGE_CLUSTER_SIZE_THRESHOLD="4",
        KCM_SECONDARY_NODE_EVICTION_RATE=f"{slow}",
    )
    with Follower(fleet) as seen:
        fleet.go_dark("b0", "b1", "b2", "b3")
        until(lambda: zones(fleet)["b"] == (PARTIAL, slow), "the state")
        until(lambda: len(seen.tainted) == 4, "the taints")
        assert seen.kept_rate(slow), seen.tainted
        assert zones(fleet)["a"] == (NORMAL, RATE)
        fleet.come_back()
        until(lambda: zones(fleet)["b"] == (NORMAL, RATE), "the return")
        until(lambda: len(seen.freed) == 4, "the end of the taints")


def test_all_zones_dark_stop_evictions_until_the_first_comes_back(launch: Launch) -> None:
    fleet = launch("aaa", "bbb", "ccc")
    with Follower(fleet) as seen:
        fleet.go_dark("a", "b", "c")
        all_dark = dict.fromkeys("abc", (FULL, 0.0))
        until(lambda: zones(fleet) == all_dark, "the states")
        # The heart renews one lease after the other: the first may have been marked, and
        # tainted, a pass before the last. What was tainted is freed.
        until(lambda: seen.freed.keys() == seen.tainted.keys(), "no taints")
        early = dict(seen.tainted)
        fleet.wait_for_passes(ENOUGH)
        assert seen.tainted == early
        assert fleet.list_tainted() == set()
        seen.tainted.clear()

        back = time.monotonic() - seen.began
        fleet.go_dark("b", "c")
        recovering = {"a": (NORMAL, RATE), "b": (FULL, RATE), "c": (FULL, RATE)}
        until(lambda: zones(fleet) == recovering, "the first zone's return")
        until(lambda: len(seen.tainted) >= 4, "taints in the others")
        assert min(seen.tainted.values()) - back > 1 / RATE - PERIOD, "a limiter begins empty"
        for zone in "bc":
            mine = [name for name in seen.tainted if name.startswith(zone)]
            assert seen.kept_rate(RATE, mine), seen.tainted

        fleet.go_dark("c")
        recovering["b"] = (NORMAL, RATE)
        until(lambda: zones(fleet) == recovering, "the second zone's return")
        fleet.come_back()
        recovering["c"] = (NORMAL, RATE)
        until(lambda: zones(fleet) == recovering, "the last zone's return")
        until(lambda: fleet.list_tainted() == set(), "the end of all taints")
