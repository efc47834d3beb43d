"""Tests how reported and published metrics are stored in Redis and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kcm.apimachinery.labels import Selector
from kcm.apimachinery.quantity import Quantity
from kcm.redisio import RedisIO
from kcm.store.resource_metrics.answers import StoredMetrics
from kcm.store.resource_metrics.usage import NodeReport, PodUsage, UsageBoard
from kcm.testing import builders
from kcm.testing.clock import FakeClock

pytestmark = pytest.mark.redis_only

MOMENT = datetime(2024, 5, 1, 12, tzinfo=UTC)
WEB, OTHER = (builders.pod(name, node="n1") for name in ("web", "other"))


def amounts(**message: str) -> Mapping[str, Quantity]:
    return {name: Quantity(text) for name, text in message.items()}


def report(node: str, **pods: PodUsage) -> NodeReport:
    by_key = {f"default/{name}": usage for name, usage in pods.items()}
    return NodeReport(node, MOMENT.timestamp(), 15.0, dict(amounts(cpu="1", memory="1Gi")), by_key)


@pytest.fixture
def board(io: RedisIO) -> UsageBoard:
    return UsageBoard(io)


@pytest.fixture
def metrics(board: UsageBoard, clock: FakeClock) -> StoredMetrics:
    return StoredMetrics(board, clock)


def use(metrics: Mapping[str, Quantity] | None = None, **containers: str) -> PodUsage:
    used = {name: dict(amounts(cpu=cpu)) for name, cpu in containers.items()}
    return PodUsage(used, metrics or {})


def test_a_report_is_read_as_it_was_written(board: UsageBoard, metrics: StoredMetrics) -> None:
    board.report([report("n1", web=use(app="100m", log="5m"))], lasts=60)
    usage = metrics.pods([WEB, OTHER, builders.pod("unbound")])
    assert list(usage) == ["default/web"]
    web = usage["default/web"]
    assert (web.moment, web.window) == (MOMENT, 15.0)
    assert web.usage == amounts(cpu="105m")
    assert web.containers == {"app": amounts(cpu="100m"), "log": amounts(cpu="5m")}
    nodes = metrics.nodes(["n1", "n2"])
    assert {name: node.usage for name, node in nodes.items()} == {
        "n1": amounts(cpu="1", memory="1Gi")
    }


def test_a_report_replaces_the_one_before(board: UsageBoard, metrics: StoredMetrics) -> None:
    board.report([report("n1", web=use(app="1"), other=use(app="1"))], lasts=60)
    board.report([report("n1", web=use(app="2"))], lasts=60)
    usage = metrics.pods([WEB, OTHER])
    assert {key: one.usage for key, one in usage.items()} == {"default/web": amounts(cpu="2")}


def test_a_report_is_forgotten_after_its_time(board: UsageBoard, io: RedisIO) -> None:
    board.report([report("n1"), report("n2")], lasts=60)
    for name in ("n1", "n2"):
        assert 0 < io.execute("PTTL", io.keys.reported(name)) <= 60_000


def test_a_pod_may_have_been_measured_at_another_time_than_its_node(
    board: UsageBoard, metrics: StoredMetrics
) -> None:
    earlier = MOMENT.timestamp() - 4
    measured = replace(use(app="1"), measured=(earlier, 11.5))
    board.report([report("n1", web=measured, other=use(app="1"))], lasts=60)
    usage = metrics.pods([WEB, OTHER])
    web, other = usage["default/web"], usage["default/other"]
    assert (web.moment, web.window) == (MOMENT - timedelta(seconds=4), 11.5)
    assert (other.moment, other.window) == (MOMENT, 15.0)


def test_pods_may_be_reported_without_their_node(board: UsageBoard, metrics: StoredMetrics) -> None:
    board.report([replace(report("n1", web=use(app="1")), usage={})], lasts=60)
    assert metrics.nodes(["n1"]) == {}
    assert list(metrics.pods([WEB])) == ["default/web"]


def test_nodes_that_report_are_told_from_those_that_are_scraped(board: UsageBoard) -> None:
    board.report([report("n1"), replace(report("n2"), scraped=True)], lasts=60)
    assert board.reporting(["n1", "n2", "n3"]) == {"n1"}
    board.report([report("n2")], lasts=60)
    assert board.reporting(["n1", "n2", "n3"]) == {"n1", "n2"}


def test_reports_of_many_nodes_are_written_in_several_calls(
    board: UsageBoard, metrics: StoredMetrics
) -> None:
    names = [f"n{number}" for number in range(150)]
    board.report([report(name) for name in names], lasts=60)
    assert len(metrics.nodes(names)) == 150


def test_a_metric_that_is_published_comes_before_one_that_is_reported(
    board: UsageBoard, metrics: StoredMetrics, clock: FakeClock
) -> None:
    board.report(
        [report("n1", web=use(amounts(hits="10"), c="1"), other=use(amounts(hits="20"), c="1"))],
        lasts=60,
    )
    board.publish("pods", "hits", "default/web", Quantity("15"))
    values_by_pod = metrics.of_pods("hits", [WEB, OTHER])
    assert {key: (str(v.value), v.moment) for key, v in values_by_pod.items()} == {
        "default/web": ("15", clock.now()),
        "default/other": ("20", MOMENT),
    }
    assert metrics.of_pods("misses", [WEB, OTHER]) == {}
    assert list(metrics.of_pods("hits", [WEB, OTHER], Selector.parse("a=b"))) == []


def test_series_of_one_object_add_up_where_they_are_asked_for(
    io: RedisIO, metrics: StoredMetrics
) -> None:
    key = io.keys.published("services", "hits")
    io.execute("HSET", key, "default/web{verb=get}", "10", "default/web{verb=put,zone=a}", "2500m")
    io.execute("HSET", key, "default/other", "1")

    def hits(selector: str) -> dict[str, str]:
        values_by_object = metrics.of_objects(
            "services", "hits", ["default/web"], Selector.parse(selector)
        )
        return {name: str(value.value) for name, value in values_by_object.items()}

    assert hits("") == {"default/web": "12500m"}
    assert hits("verb=put") == {"default/web": "2500m"}
    assert hits("verb=post") == {}


def test_an_external_metric_is_one_of_a_namespace(io: RedisIO, metrics: StoredMetrics) -> None:
    key = io.keys.published("external", "length")
    io.execute("HSET", key, "default{queue=a}", "1", "default{queue=b}", "2", "other", "4")
    values_of_series = metrics.external("default", "length")
    assert [(labels, str(v.value)) for labels, v in values_of_series] == [
        ({"queue": "a"}, "1"),
        ({"queue": "b"}, "2"),
    ]
    [(_, value)] = metrics.external("default", "length", Selector.parse("queue=b"))
    assert str(value.value) == "2"


def test_a_value_that_is_no_quantity_counts_as_not_published(
    io: RedisIO, board: UsageBoard, metrics: StoredMetrics
) -> None:
    board.publish("external", "length", "default", Quantity("1"))
    io.execute("HSET", io.keys.published("external", "length"), "default{a=b}", "many")
    assert len(metrics.external("default", "length")) == 1


def test_what_is_published_can_be_listed(board: UsageBoard, metrics: StoredMetrics) -> None:
    board.publish("pods", "job:hits:rate5m", "default/web", Quantity("1"))
    board.publish("external", "length", "default", Quantity("1"))
    board.publish("external", "length", "other", Quantity("1"))
    assert metrics.list_metrics() == [("external", "length"), ("pods", "job:hits:rate5m")]
