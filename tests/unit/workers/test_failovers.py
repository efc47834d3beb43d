"""Tests how Celery's connections follow what a sentinel announces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from celery import Celery

from kcm.redisio.announcements import Announcements
from workers.failovers import (
    AGAIN,
    LINKS,
    FollowMasterStep,
    _Listener,  # what the step makes of each sentinel
)

ADDRESS = ("10.0.0.2", 6380)
NAMED = ("+switch-master", "kcm 10.0.0.1 6379 10.0.0.2 6380")
OTHER = ("+switch-master", "other 10.0.0.1 6379 10.0.0.3 6380")
GIVEN_UP = ("-failover-abort-slave-timeout", "master kcm 10.0.0.1 6379")


@pytest.fixture(autouse=True)
def nothing_announced() -> Iterator[None]:
    """Forgets what the tests announce to the process."""
    yield
    LINKS.announce_master(None)


class Hub:
    """What is asked of Celery's event loop."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.later: list[tuple[float, Callable[[], None]]] = []

    def add_reader(self, descriptor: int, read: Callable[[], None]) -> None:
        self.readers[descriptor] = read

    def remove_reader(self, descriptor: int) -> None:
        del self.readers[descriptor]

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self.later.append((seconds, call))


class Sentinel:
    """What is asked of `Announcements`: it is away, or says these."""

    service = "kcm"

    def __init__(self, *announcements: tuple[str, str] | OSError) -> None:
        self.announcements = list(announcements)
        self.is_away = False

    def open(self) -> None:
        if self.is_away:
            raise OSError("refused")

    def fileno(self) -> int:
        return 7

    def read(self, patience: float) -> tuple[str, str] | None:
        if not self.announcements:
            return None
        announcement = self.announcements.pop(0)
        if isinstance(announcement, OSError):
            raise announcement
        return announcement

    def close(self) -> None: ...


def listen(sentinel: Sentinel) -> Hub:
    hub = Hub()
    _Listener(hub, cast("Announcements", sentinel)).connect()
    return hub


def test_an_announced_master_ends_the_connection_to_the_broker_once() -> None:
    sentinel = Sentinel(OTHER, NAMED)
    hub = listen(sentinel)
    with pytest.raises(ConnectionError, match=r"10\.0\.0\.2:6380"):
        hub.readers[7]()
    assert LINKS.announced_master() == ADDRESS
    sentinel.announcements = [NAMED]
    hub.readers[7]()  # another sentinel says the same


def test_a_failover_that_is_given_up_leads_back() -> None:
    sentinel = Sentinel(NAMED)
    hub = listen(sentinel)
    with pytest.raises(ConnectionError):
        hub.readers[7]()
    sentinel.announcements = [GIVEN_UP]
    hub.readers[7]()
    assert LINKS.announced_master() is None


def test_a_sentinel_that_goes_away_is_tried_again() -> None:
    sentinel = Sentinel(OSError("reset"))
    hub = listen(sentinel)
    hub.readers[7]()
    assert not hub.readers
    ((seconds, connect),) = hub.later
    assert seconds == AGAIN
    sentinel.is_away = True
    connect()
    assert len(hub.later) == 2
    sentinel.is_away = False
    connect()
    assert 7 in hub.readers


def test_answers_to_remote_control_leave_the_former_master_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KCM_REDIS_URL", "sentinel://127.0.0.1:1/kcm")
    app = Celery(broker="memory://", set_as_current=False)
    consumer = SimpleNamespace(app=app, hub=Hub())
    step = FollowMasterStep(consumer)
    step.start(consumer)
    with app.pool.acquire() as before:
        before.connect()
    step.stop(consumer)
    assert not before.connected
    with app.pool.acquire() as after:
        assert after is not before


def test_channels_ask_for_the_announced_master_first() -> None:
    from kombu import Connection

    from workers.transport import SentinelTransport

    options: dict[str, Any] = {"master_name": "kcm"}
    with Connection(
        "sentinel://127.0.0.1:1/0", transport=SentinelTransport, transport_options=options
    ) as connection:
        channel = object.__new__(SentinelTransport.Channel)
        channel.connection = connection.transport
        channel.connection.client = connection
        channel.master_name = "kcm"
        pool = channel._sentinel_managed_pool()
        LINKS.announce_master(ADDRESS)
        assert pool.get_master_address() == ADDRESS
