"""Connections whose clients have not authenticated."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from kcm.apiserver.http.notices import EVERY, Notices
from kcm.apiserver.http.unauthenticated import UnauthenticatedConnections

HERE, THERE = "192.0.2.1", "192.0.2.2"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_each_address_has_so_many(registry: CollectorRegistry) -> None:
    connections = UnauthenticatedConnections(2, registry)
    first, _ = connections.admit(HERE), connections.admit(HERE)
    with capture_logs() as lines:
        assert (connections.admit(HERE), connections.admit(HERE)) == (None, None)
    assert connections.admit(THERE) is not None
    assert [(line["address"], line["limit"]) for line in lines] == [(HERE, 2)]
    assert registry.get_sample_value("kcm_apiserver_connections_refused_total") == 2
    assert registry.get_sample_value("kcm_apiserver_connections_unauthenticated") == 3
    assert first is not None
    for _ in range(2):  # when it has authenticated, and when it ends
        first.let_go()
    assert connections.admit(HERE) is not None
    assert connections.admit(HERE) is None


def test_zero_is_no_limit(registry: CollectorRegistry) -> None:
    connections = UnauthenticatedConnections(0, registry)
    assert None not in [connections.admit(HERE) for _ in range(1000)]


def test_the_log_has_one_line_a_minute_for_each_name() -> None:
    now = 0.0
    notices = Notices(lambda: now)
    assert [notices.count("a"), notices.count("a"), notices.count("b")] == [1, None, 1]
    now = EVERY
    assert [notices.count("a"), notices.count("a")] == [2, None]


def test_names_that_were_made_up_do_not_fill_the_memory() -> None:
    notices = Notices(lambda: 0.0)
    for number in range(2000):
        assert notices.count(str(number)) == 1
    assert notices.count("0") == 1  # forgotten
    assert notices.count("1999") is None
