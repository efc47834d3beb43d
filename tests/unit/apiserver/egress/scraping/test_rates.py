"""Rates from two scrapes, as metrics-server computes them."""

from __future__ import annotations

import pytest

from kcm.apimachinery.quantity import Quantity, ResourceList
from kcm.apiserver.egress.scraping.page import NODE, Place, Point
from kcm.apiserver.egress.scraping.rates import NodeHistory
from kcm.store.resource_metrics.usage import NodeReport, PodUsage

T = 1_700_000_000.0
MAIN, SIDE = ("default/web", "main"), ("default/web", "side")


def point(at: float, cpu: float, memory: float = 2048, started: float = -100) -> Point:
    return Point(T + at, cpu, memory, T + started)


def amounts(cpu: str, memory: str = "2Ki") -> ResourceList:
    return {"cpu": Quantity(cpu), "memory": Quantity(memory)}


def take(*scrapes: dict[Place, Point]) -> NodeReport | None:
    """Returns what follows from the last of several scrapes."""
    history = NodeHistory("n1")
    for scrape in scrapes[:-1]:
        history.take(scrape)
    return history.take(scrapes[-1])


def usage(*points: Point) -> PodUsage | None:
    """Returns the usage of a pod with one container that was seen with these points."""
    report = take(*({MAIN: each} for each in points))
    return report.pods["default/web"] if report is not None else None


def test_the_usage_is_the_difference_by_the_time_between() -> None:
    report = take(
        {NODE: Point(T, 100, 4096), MAIN: point(0, 10), SIDE: point(1, 5)},
        {NODE: Point(T + 15, 115, 8192), MAIN: point(16, 18, 1024 * 1024), SIDE: point(11, 5.5)},
    )
    pod = PodUsage(
        {"main": amounts("500m", "1Mi"), "side": amounts("50m")}, measured=(T + 11, 10.0)
    )
    assert report == NodeReport(
        "n1", T + 15, 15.0, amounts("1", "8Ki"), {"default/web": pod}, scraped=True
    )


def test_the_first_scrape_says_nothing() -> None:
    assert take({NODE: Point(T, 100, 4096), MAIN: point(0, 10)}) is None


def test_a_container_between_10_and_15_seconds_old_is_measured_from_its_start() -> None:
    fresh = usage(point(0, 6, started=-12))
    assert fresh is not None
    assert (fresh.containers, fresh.measured) == ({"main": amounts("500m")}, (T, 12.0))
    for age in (9.9, 15.0, -1.0):
        assert usage(point(0, 6, started=-age)) is None


def test_a_restart_begins_anew() -> None:
    assert usage(point(0, 10), point(15, 1, started=7)) is None
    after = usage(point(0, 10), point(15, 1, started=7), point(30, 2.5, started=7))
    assert after is not None
    assert (after.containers, after.measured) == ({"main": amounts("100m")}, (T + 30, 15.0))


def test_a_kubelet_that_has_not_measured_anew_keeps_its_figures() -> None:
    stale = usage(point(0, 10), point(15, 13), point(15, 13))
    assert stale is not None
    assert (stale.containers, stale.measured) == ({"main": amounts("200m")}, (T + 15, 15.0))
    assert usage(point(0, 10), point(0, 10)) is None


@pytest.mark.parametrize("at", [-1.0, 0.0])
def test_a_time_that_goes_back_gives_no_rate(at: float) -> None:
    assert usage(point(0, 10), point(15, 13), point(at, 14)) is None


@pytest.mark.parametrize("last", [point(15, 9), point(15, 11, started=-200)])
def test_a_pod_whose_counter_goes_back_is_left_out(last: Point) -> None:
    report = take(
        {NODE: Point(T, 1, 1024), MAIN: point(0, 10), SIDE: point(0, 1)},
        {NODE: Point(T + 15, 2, 1024), MAIN: last, SIDE: point(15, 2)},
    )
    assert report is not None
    assert report.pods == {}


def test_a_pod_is_left_out_until_all_of_its_containers_have_rates() -> None:
    first = {MAIN: point(0, 10)}
    second = {MAIN: point(15, 11), SIDE: point(15, 1)}
    assert take(first, second) is None
    assert take(first, second, {MAIN: point(30, 12), SIDE: point(30, 2)}) is not None


def test_pods_are_reported_where_the_node_itself_is_not_measured() -> None:
    report = take({MAIN: point(0, 10)}, {MAIN: point(15, 11.5)})
    assert report is not None
    assert (report.usage, report.moment, report.window) == ({}, T + 15, 15.0)
