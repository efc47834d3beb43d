"""A planned failover by a real sentinel; `tests/chaos/test_failovers.py` has the other faults."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kcm.redisio import RedisIO
from kcm.redisio.announcements import Announcements
from kcm.settings import Settings
from kcm.testing.waiting import PATIENCE, until
from tests.chaos.failovers import Rig, check, plan_failover, running_rig
from tests.integration.redisio.replicas import Replicas

NAMED = "+switch-master"
# The time limit is long, for a command that waits.
SETTINGS = Settings(redis_url="sentinel://127.0.0.1:1/kcm", socket_timeout=300)


@pytest.fixture
def io() -> Iterator[RedisIO]:
    """Gives a client that follows what is announced to it."""
    with closing(RedisIO(SETTINGS)) as io:
        yield io


def test_a_planned_failover_loses_nothing_that_replicas_had_to_have(tmp_path: Path) -> None:
    with running_rig(tmp_path, min_replicas=1, sentinels=1) as rig:
        before = rig.master()
        settings = Settings(redis_url=rig.url, redis_durability="replicated")

        def has_moved(rig: Rig) -> bool:
            return rig.master() is not before

        outcome = check(rig, settings, plan_failover, 0.3, has_moved)
        assert len(outcome.acknowledged) > 30
        assert (outcome.lost, outcome.given_twice, outcome.ghosts) == (0, 0, 0)
        assert rig.master().client.info("commandstats")["cmdstat_evalsha"]["calls"] > 0


def test_a_command_that_failed_is_sent_to_the_server_that_is_the_master_by_then(
    replicas: Replicas, io: RedisIO
) -> None:
    first, second, _ = replicas.servers
    io.links.announce_master(("127.0.0.1", first.port))
    pool = io.driver.connection_pool
    connection = pool.get_connection()
    assert connection.port == first.port
    connection.disconnect()  # type: ignore[no-untyped-call] # the driver's gap
    io.links.announce_master(("127.0.0.1", second.port))
    connection.send_command("PING")  # type: ignore[no-untyped-call] # the driver's gap
    assert connection.read_response() == b"PONG"
    assert connection.port == second.port
    pool.release(connection)


def test_a_command_that_waits_at_the_former_master_is_sent_to_the_new_one(
    replicas: Replicas, io: RedisIO
) -> None:
    first, second, _ = replicas.servers
    second.promote()
    io.links.announce_master(("127.0.0.1", first.port))
    replies: list[object] = []
    thread = threading.Thread(target=lambda: replies.append(io.execute("BLPOP", "list", 0)))
    thread.start()
    until(lambda: first.client.info("clients")["blocked_clients"] == 1, "it waits")
    io.links.announce_master(("127.0.0.1", second.port))
    second.client.rpush("list", "there")
    thread.join(PATIENCE)
    assert replies == [(b"list", b"there")]


def test_what_is_announced_right_after_the_subscription_is_read_at_once(replicas: Replicas) -> None:
    server = replicas.master
    announcements = Announcements(SETTINGS, ("127.0.0.1", server.port))
    announcements.open()
    until(lambda: server.client.pubsub_numsub(NAMED)[0][1] == 1, "the subscription")
    server.client.publish(NAMED, "kcm 10.0.0.1 6379 10.0.0.2 6379")
    server.client.ping()  # by now it was sent
    assert announcements.read(0) == (NAMED, "kcm 10.0.0.1 6379 10.0.0.2 6379")
    announcements.close()
