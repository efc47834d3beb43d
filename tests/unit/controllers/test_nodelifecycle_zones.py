"""Tests zones as upstream's documentation describes them: their states, eviction rates, and which
nodes are evicted when.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kcm.controllers.nodelifecycle.taints import add_no_execute
from kcm.controllers.nodelifecycle.zones import (
    EvictionRates,
    ZoneState,
    format_zone,
    judge_zones,
    zone_key,
)
from kcm.reconcile.plan import Patch
from kcm.testing.builders import node
from tests.unit.controllers.nodelifecycle_world import Silence, in_zone

RATES = EvictionRates(normal=0.1, secondary=0.01, large_cluster=50, unhealthy_threshold=0.55)
A, B, C = (f":\0:{letter}" for letter in "abc")
INITIAL, NORMAL, PARTIAL, FULL = ZoneState


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({}, ""),
        ({"topology.kubernetes.io/zone": "z"}, ":\0:z"),
        ({"topology.kubernetes.io/region": "r"}, "r:\0:"),
        ({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}, "r:\0:z"),
        (
            {
                "failure-domain.beta.kubernetes.io/zone": "old",
                "topology.kubernetes.io/zone": "z",
            },
            ":\0:old",
        ),
    ],
)
def test_a_zone_is_named_by_region_and_zone(labels: dict[str, str], key: str) -> None:
    assert zone_key(node(labels=labels)) == key


def test_a_zone_is_shown_without_what_nobody_can_read() -> None:
    assert [format_zone(key) for key in ("", A, "r:\0:z", "r:\0:")] == ["(none)", "a", "r/z", "r"]


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        (0, 0, NORMAL),
        (1, 0, NORMAL),
        (0, 1, FULL),
        (0, 10, FULL),
        (1, 2, NORMAL),  # two are too few to say anything
        (1, 3, PARTIAL),
        (9, 11, PARTIAL),  # 0.55
        (46, 54, NORMAL),
        (45, 55, PARTIAL),
    ],
)
def test_the_state_of_a_zone(ready: int, not_ready: int, state: ZoneState) -> None:
    assert RATES.state_of(ready, not_ready) is state


@pytest.mark.parametrize(
    ("counts", "rates"),
    [
        ({"a": (10, 0), "b": (10, 0)}, {"a": 0.1, "b": 0.1}),
        ({"a": (10, 0), "b": (0, 10)}, {"a": 0.1, "b": 0.1}),
        ({"a": (10, 0), "b": (4, 6)}, {"a": 0.1, "b": 0.0}),
        ({"a": (10, 0), "b": (10, 50)}, {"a": 0.1, "b": 0.01}),
        ({"a": (0, 10), "b": (10, 50)}, {"a": 0.1, "b": 0.01}),
        ({"a": (0, 10), "b": (0, 1)}, {"a": 0.0, "b": 0.0}),
        ({"a": (0, 0), "b": (0, 1)}, {"a": 0.0, "b": 0.0}),
        ({"a": (0, 0)}, {"a": 0.1}),
        ({}, {}),
    ],
)
def test_the_rates_of_zones(counts: dict[str, tuple[int, int]], rates: dict[str, float]) -> None:
    assert {key: zone.rate for key, zone in judge_zones({}, counts, RATES).zones.items()} == rates


@pytest.mark.parametrize(
    ("before", "counts", "down", "left"),
    [
        ({}, {}, False, False),
        ({}, {"a": (0, 1)}, True, False),
        ({"a": NORMAL}, {"a": (0, 1)}, True, False),
        ({"a": FULL}, {"a": (0, 1)}, True, False),
        ({"a": FULL}, {"a": (1, 0)}, False, True),
        ({"a": FULL, "b": FULL}, {"a": (1, 1), "b": (0, 1)}, False, True),
        ({"a": FULL, "b": NORMAL}, {"a": (0, 1), "b": (0, 1)}, True, False),
        ({"a": FULL, "b": NORMAL}, {"a": (0, 1)}, True, False),  # zone b is gone
        ({"a": FULL}, {"a": (0, 1), "b": (0, 1)}, True, False),  # a new one, dark as the other
    ],
)
def test_all_zones_are_down_until_the_first_comes_back(
    before: dict[str, ZoneState], counts: dict[str, tuple[int, int]], down: bool, left: bool
) -> None:
    disruption = judge_zones(before, counts, RATES)
    assert (disruption.down, disruption.left) == (down, left)


# --- measured from what happens


def three_zones(each: int = 4, **options: Any) -> Silence:
    nodes = [in_zone(f"{zone}{i}", zone) for zone in "abc" for i in range(each)]
    return Silence(*nodes, **options)


def go_dark(cluster: Silence, *names: str) -> None:
    cluster.silent = {n.name for n in cluster.nodes() if n.name.startswith(names)}


def test_one_of_three_zones_dark_is_given_up_at_the_normal_rate() -> None:
    cluster = three_zones()
    cluster.run(3)
    go_dark(cluster, "b")
    cluster.run(60)
    assert cluster.zones()[B].state is FULL
    assert cluster.rate(B) == 0.1
    times = sorted(cluster.tainted_at.items())
    assert [name for name, _ in times] == ["b0", "b1", "b2", "b3"]
    assert [at for _, at in times] == [14.0, 24.0, 34.0, 44.0]


def test_most_of_a_small_zone_dark_is_not_given_up() -> None:
    cluster = three_zones(5)
    cluster.run(3)
    go_dark(cluster, "b0", "b1", "b2")
    cluster.run(120)
    assert cluster.zones()[B].state is PARTIAL
    assert cluster.rate(B) == 0.0
    assert cluster.tainted_at == {}
    assert len(cluster.zones()[B].queue) == 3
    assert len(cluster.unknown_at) == 3


def test_most_of_a_large_zone_dark_is_given_up_slowly() -> None:
    cluster = three_zones(10, large_cluster_size_threshold=9)
    cluster.run(3)
    go_dark(cluster, *(f"b{i}" for i in range(6)))
    cluster.run(250)
    assert cluster.rate(B) == 0.01
    times = sorted(cluster.tainted_at.values())
    assert times == [14.0, 114.0, 214.0]


def test_all_zones_dark_stops_everything_and_takes_taints_back() -> None:
    cluster = three_zones()
    cluster.run(3)
    go_dark(cluster, "b")
    cluster.run(20)
    assert cluster.tainted_at
    go_dark(cluster, "a", "b", "c")
    cluster.run(11)
    assert {zone.state for zone in cluster.zones().values()} == {FULL}
    assert [cluster.rate(zone) for zone in (A, B, C)] == [0.0, 0.0, 0.0]
    cluster.run(100)
    assert not any(cluster.keys(n.name, "NoExecute") for n in cluster.nodes())


def test_a_taint_that_crossed_with_the_stop_is_taken_back_too() -> None:
    cluster = three_zones()
    cluster.run(3)
    go_dark(cluster, "a", "b", "c")
    cluster.run(11)
    late = next(node for node in cluster.nodes() if node.name == "b0")
    cluster.world.write(Patch(late, partial(add_no_execute, cluster.world.now)))
    assert cluster.keys("b0", "NoExecute")
    cluster.run(1)
    assert not cluster.keys("b0", "NoExecute")


def test_recovery_from_all_dark_restores_the_rates_and_gives_time() -> None:
    cluster = three_zones()
    cluster.run(3)
    go_dark(cluster, "a", "b", "c")
    cluster.run(60)
    cluster.tainted_at.clear()
    go_dark(cluster, "b", "c")
    back = cluster.seconds + 1
    cluster.run(40)
    assert cluster.zones()[A].state is NORMAL
    assert cluster.zones()[B].state is FULL
    assert [cluster.rate(zone) for zone in (A, B, C)] == [0.1, 0.1, 0.1]
    # A limiter that gave nothing starts empty.
    assert sorted({at - back for at in cluster.tainted_at.values()}) == [10.0, 20.0, 30.0]


def test_a_zone_that_recovers_is_normal_again() -> None:
    cluster = three_zones(5)
    cluster.run(3)
    go_dark(cluster, "b0", "b1", "b2")
    cluster.run(20)
    assert cluster.zones()[B].state is PARTIAL
    go_dark(cluster, "b0")
    cluster.run(1)
    assert cluster.zones()[B].state is NORMAL
    assert cluster.rate(B) == 0.1
    cluster.run(11)
    assert list(cluster.tainted_at) == ["b0"]


def test_excluded_nodes_do_not_speak_for_their_zone() -> None:
    label = {"node.kubernetes.io/exclude-disruption": ""}
    cluster = Silence(node("n1"), node("n2", labels=label), node("n3", labels=label))
    cluster.run(2)
    go_dark(cluster, "n2", "n3")
    cluster.run(11)
    assert cluster.zones()[""].state is NORMAL
    assert cluster.zones()[""].nodes == 1
    assert list(cluster.tainted_at) == ["n2"]


def test_zones_come_and_go_with_their_nodes() -> None:
    cluster = Silence(in_zone("a0", "a"), in_zone("b0", "b"))
    cluster.run(1)
    cluster.world.remove(cluster.world.objects["nodes", "b0"])
    cluster.run(1)
    assert list(cluster.zones()) == [A]
    assert cluster.has_limit(A)
    assert not cluster.has_limit(B)
    cluster.put(in_zone("c0", "c"))
    cluster.run(1)
    assert sorted(cluster.zones()) == [A, C]


def test_high_rates_are_kept_up_although_passes_are_rare() -> None:
    cluster = Silence(*(node(f"n{i:03}") for i in range(200)), node_eviction_rate=20.0)
    cluster.run(2)
    go_dark(cluster, *(f"n{i:03}" for i in range(60)))
    cluster.run(15)
    times = sorted(cluster.tainted_at.values())
    assert [times.count(at) for at in sorted(set(times))] == [20, 20, 20]
