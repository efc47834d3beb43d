"""Tests how many replicas follow from a metric, by the cases of upstream's
replica_calculator_test.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Pod, ResourceRequirements
from kcm.apimachinery.quantity import Quantity
from kcm.controllers.horizontalpodautoscaling.calculator import (
    Calculator,
    CalculatorRules,
    MetricError,
    PodMetric,
    Tolerances,
)
from kcm.testing import builders
from kcm.testing.views import NOW
from tests.unit.controllers.autoscaling import MINUTE, pod

RULES = CalculatorRules(Tolerances(0.1, 0.1), 2 * MINUTE, timedelta(seconds=10), NOW)


def pods(count: int, **changes: Any) -> list[Pod]:
    return [pod(f"p{n}", **changes) for n in range(count)]


def figures(*milli: int | None, age: float = 0) -> dict[str, PodMetric]:
    """Returns the metrics of the pods p0, p1 and so on; None leaves a pod's metric out."""
    moment = NOW - timedelta(seconds=age)
    window = timedelta(seconds=10)
    return {f"p{n}": PodMetric(m, moment, window) for n, m in enumerate(milli) if m is not None}


def by_utilization(
    sequence: Sequence[Pod],
    target: int,
    seen: Mapping[str, PodMetric],
    rules: CalculatorRules = RULES,
) -> tuple[int, int, int]:
    result = Calculator(len(sequence), sequence, rules).by_utilization(target, "cpu", "", seen)
    return result.replicas, result.percent, result.average


def build_starting_pod(name: str, *, ready: bool) -> Pod:
    """Returns a pod that started a minute ago, within the period in which its CPU metrics may not
    count.
    """
    return pod(name, ready=ready, started=NOW - MINUTE, since=NOW - MINUTE)


FIVE = pods(5)
THREE = pods(3)


@pytest.mark.parametrize(
    ("targets", "target", "seen", "expected"),
    [
        # three at 30, 50, 70 percent: 50 percent of a target of 30
        pytest.param(THREE, 30, figures(300, 500, 700), (5, 50, 500), id="up"),
        pytest.param(FIVE, 50, figures(100, 300, 500, 250, 250), (3, 28, 280), id="down"),
        pytest.param(THREE, 100, figures(1010, 1030, 1020), (3, 102, 1020), id="within"),
        pytest.param(THREE, 100, figures(1100, 1100, 1100), (3, 110, 1100), id="just within"),
        pytest.param(THREE, 100, figures(1120, 1110, 1110), (4, 111, 1113), id="just above"),
        pytest.param(THREE, 50, figures(0, 0, 0), (0, 0, 0), id="idle"),
        # a pod that is missing counts as idle going up ...
        pytest.param(
            pods(4), 50, figures(700, 800, None, None), (4, 75, 750), id="up, missing: no change"
        ),
        pytest.param(THREE, 20, figures(900, 900, None), (9, 90, 900), id="up, missing: less"),
        # ... and as at its whole request going down
        pytest.param(
            pods(4), 100, figures(100, 100, 100, None), (2, 10, 100), id="down, missing: less"
        ),
        pytest.param(
            pods(4), 50, figures(400, 400, 400, None), (4, 40, 400), id="down, missing: turns"
        ),
        # a target above the requests: the missing are taken to be at that
        pytest.param(
            pods(4), 200, figures(400, 400, 400, None), (2, 40, 400), id="down, missing, 200 %"
        ),
        pytest.param(
            [*pods(2), pod("p2", phase="Pending"), pod("p3", phase="Pending")],
            50,
            figures(900, 900),
            (4, 90, 900),
            id="up, unready: they may be enough",
        ),
        pytest.param(
            [*pods(2), build_starting_pod("p2", ready=False)],
            30,
            figures(900, 900, 900),
            (6, 90, 900),
            id="up, a cold start: idle",
        ),
        pytest.param(
            [*pods(2), build_starting_pod("p2", ready=False)],
            50,
            figures(100, 100, 900),
            (1, 10, 100),
            id="down, a cold start: left out",
        ),
        pytest.param(
            [*pods(2), pod("p2", phase="Failed")], 50, figures(900, 900), (4, 90, 900), id="failed"
        ),
        pytest.param(
            [*pods(2), pod("p2", deleting=NOW)],
            50,
            figures(900, 900, 10),
            (4, 90, 900),
            id="on its way out",
        ),
    ],
)
def test_a_utilization_asks_for(
    targets: list[Pod], target: int, seen: dict[str, PodMetric], expected: tuple[int, int, int]
) -> None:
    assert by_utilization(targets, target, seen) == expected


@pytest.mark.parametrize(
    ("one", "age", "counts"),
    [
        (pod("p1"), 0, True),
        (pod("p1", ready=False, since=builders.START + 30 * MINUTE), 0, True),
        (pod("p1", ready=False), 0, False),  # never ready since it started
        (build_starting_pod("p1", ready=True), 0, True),
        (
            build_starting_pod("p1", ready=True),
            55,
            False,
        ),  # measured before it was ready for a window
        (build_starting_pod("p1", ready=False), 0, False),
        (pod("p1", started=None), 0, False),
    ],
)
def test_a_figure_of_the_cpu_counts_once_the_pod_has_started(
    one: Pod, age: int, counts: bool
) -> None:
    seen = {**figures(500), "p1": figures(500, 500, age=age)["p1"]}
    _, _, average = by_utilization([pod("p0"), one], 50, seen)
    calculator = Calculator(2, [pod("p0"), one], RULES)
    doubled = {**seen, "p1": PodMetric(1500, seen["p1"].moment, seen["p1"].window)}
    utilization = calculator.by_utilization(50, "cpu", "", doubled)
    assert (average, utilization.average) == (500, 1000 if counts else 500)


def test_only_figures_of_the_cpu_are_left_out_of_a_starting_pod() -> None:
    pods = [pod("p0"), build_starting_pod("p1", ready=False)]
    assert Calculator(2, pods, RULES).by_average(100, "memory", figures(100, 300)) == (4, 200)
    assert Calculator(2, pods, RULES).by_average(100, "cpu", figures(100, 300)) == (2, 100)


@pytest.mark.parametrize(
    ("pods", "seen", "why"),
    [
        ([], {}, "no pods returned by selector while calculating replica count"),
        (
            [pod("p0", ready=False)],
            figures(100),
            "did not receive metrics for targeted pods (pods might be unready)",
        ),
        (
            [pod("p0", cpu=None)],
            figures(100),
            "missing request for cpu in container app of Pod p0",
        ),
        ([pod("p0", cpu="0")], figures(100), "no metrics returned matched known pods"),
    ],
)
def test_no_number_follows_from_a_utilization(
    pods: list[Pod], seen: dict[str, PodMetric], why: str
) -> None:
    with pytest.raises(MetricError, match="^" + why.replace("(", r"\(").replace(")", r"\)") + "$"):
        by_utilization(pods, 50, seen)


def test_the_request_of_a_sidecar_counts_and_that_of_an_init_container_does_not() -> None:
    def container(name: str, amount: str, **fields: object) -> object:
        new_container = pod("x", cpu=amount).spec.containers[0]
        return new_container.replace(name=name, **fields)

    one = pod("p0", init_containers=[
        container("setup", "7"),
        container("proxy", "1", restart_policy="Always"),
    ])  # fmt: skip
    result = Calculator(1, [one], RULES).by_utilization(50, "cpu", "", figures(1000))
    assert result.percent == 50
    result = Calculator(1, [one], RULES).by_utilization(50, "cpu", "proxy", figures(1000))
    assert result.percent == 100


def test_the_request_of_a_whole_pod_counts_instead_of_its_containers() -> None:
    whole = pod("p0", resources=ResourceRequirements(requests={"cpu": Quantity("4")}))
    result = Calculator(1, [whole], RULES).by_utilization(50, "cpu", "", figures(1000))
    assert result.percent == 25
    result = Calculator(1, [whole], RULES).by_utilization(50, "cpu", "app", figures(1000))
    assert result.percent == 100


def test_a_container_that_a_pod_has_not_is_told() -> None:
    with pytest.raises(MetricError, match="container other not found in Pod p0"):
        Calculator(1, [pod("p0")], RULES).by_utilization(50, "cpu", "other", figures(1000))


@pytest.mark.parametrize(
    ("targets", "target", "seen", "expected"),
    [
        pytest.param(THREE, 15, figures(20, 10, 30), (4, 20), id="up"),
        pytest.param(FIVE, 20, figures(12, 12, 12, 12, 12), (3, 12), id="down"),
        pytest.param(THREE, 20, figures(19, 21, 21), (3, 20), id="within"),
        pytest.param(THREE, 15, figures(50, 10, None), (4, 30), id="up, missing"),
        pytest.param(FIVE, 20, figures(10, 10, 10, 10, None), (3, 10), id="down, missing"),
        pytest.param(
            [*pods(2), pod("p2", phase="Pending")], 15, figures(50, 10), (4, 30), id="up, pending"
        ),
        pytest.param(
            [pod("p0"), pod("p1", ready=False)], 15, figures(50, 10), (4, 30), id="unready counts"
        ),
    ],
)
def test_an_average_asks_for(
    targets: list[Pod], target: int, seen: dict[str, PodMetric], expected: tuple[int, int]
) -> None:
    assert Calculator(len(targets), targets, RULES).by_average(target, "", seen) == expected


@pytest.mark.parametrize(
    ("replicas", "targets", "target", "value", "expected"),
    [
        (3, THREE, 15, 20, 4),
        (3, THREE, 20, 21, 3),
        (3, [*pods(2), pod("p2", ready=False)], 10, 30, 6),  # only the ready share it
        (5, FIVE, 20, 12, 3),
        (0, [], 10, 25, 3),
        (0, [], 10, 0, 0),
        (3, THREE, 10, 0, 0),
    ],
)
def test_a_value_asks_for(
    replicas: int, targets: list[Pod], target: int, value: int, expected: int
) -> None:
    assert Calculator(replicas, targets, RULES).by_value(target, value) == expected


def test_no_number_follows_from_a_value_without_pods() -> None:
    with pytest.raises(MetricError, match="unable to calculate ready pods: no pods returned"):
        Calculator(3, [], RULES).by_value(10, 30)


@pytest.mark.parametrize(
    ("present", "target", "value", "expected"),
    [
        (3, 10, 50, (5, 17)),
        (3, 10, 31, (3, 11)),
        (4, 10, 10, (1, 3)),
        (0, 10, 25, (3, 25)),
        (3, 10, 0, (0, 0)),
    ],
)
def test_a_share_asks_for(present: int, target: int, value: int, expected: tuple[int, int]) -> None:
    assert Calculator(3, THREE, RULES).by_share(present, target, value) == expected


@pytest.mark.parametrize(
    ("down", "up", "milli", "expected"),
    [(0.1, 0.1, 1150, 4), (0.1, 0.2, 1150, 3), (0.5, 0.2, 600, 3), (0.1, 0.2, 600, 2)],
)
def test_tolerances_differ_by_direction(down: float, up: float, milli: int, expected: int) -> None:
    rules = CalculatorRules(Tolerances(down, up), 2 * MINUTE, timedelta(seconds=10), NOW)
    assert by_utilization(THREE, 100, figures(milli, milli, milli), rules)[0] == expected
