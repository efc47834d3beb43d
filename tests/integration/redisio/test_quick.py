"""Commands that are sent past the driver's client, and the connections that they use."""

from __future__ import annotations

import os
import threading

import pytest
import redis

from kcm import errors
from kcm.redisio import RedisIO
from kcm.redisio.commands import pack
from kcm.redisio.quick import LinkError, QuickPool
from kcm.settings import Settings


def pool_of(io: RedisIO) -> QuickPool:
    pool = io.driver.connection_pool
    assert isinstance(pool, QuickPool)
    return pool


@pytest.fixture
def pool(io: RedisIO) -> QuickPool:
    return pool_of(io)


def own_id(pool: QuickPool) -> int:
    """Returns the server's number of the connection that the pool sends over."""
    (number,) = pool.exchange(pack(["CLIENT ID"]), 1)
    assert isinstance(number, int)
    return number


def test_replies_come_in_order_with_errors_in_their_places(pool: QuickPool) -> None:
    commands = [["ECHO", "a"], ["GET"], ["ECHO", "b"]]
    first, error, last = pool.exchange(b"".join(map(pack, commands)), 3)
    assert (first, last) == (b"a", b"b")
    assert isinstance(error, redis.ResponseError)


def test_a_connection_is_used_again(pool: QuickPool) -> None:
    assert own_id(pool) == own_id(pool)


def test_threads_have_connections_of_their_own(pool: QuickPool) -> None:
    taken = pool.take()
    others: list[int] = []
    thread = threading.Thread(target=lambda: others.append(own_id(pool)))
    thread.start()
    thread.join()
    pool.put_back(taken)
    assert others != [own_id(pool)]


def test_a_connection_that_the_server_has_closed_fails_once(pool: QuickPool, io: RedisIO) -> None:
    number = own_id(pool)
    taken = pool.take()
    io.execute("CLIENT KILL", "ID", number)
    pool.put_back(taken)
    with pytest.raises(LinkError):
        own_id(pool)
    assert own_id(pool) != number


def test_a_caller_does_not_notice_a_connection_that_the_server_has_closed(io: RedisIO) -> None:
    number = io.execute("CLIENT ID")
    RedisIO(io.settings).execute("CLIENT KILL", "ID", number)
    assert io.execute("PING") is True


def test_a_reply_that_comes_too_late_is_nobodys(io: RedisIO, settings: Settings) -> None:
    short = RedisIO(settings.model_copy(update={"socket_timeout": 0.1}), patient=True)
    short.execute("PING")
    io.execute("CLIENT PAUSE", 60_000, "WRITE")
    with pytest.raises(errors.StoreUnavailable):
        short.execute("INCR", "late")
    io.execute("CLIENT UNPAUSE")
    assert short.execute("ECHO", "next") == b"next"


def test_idle_connections_are_closed_with_those_of_the_driver(io: RedisIO, pool: QuickPool) -> None:
    number = own_id(pool)
    io.links.drop_idle()
    assert own_id(pool) != number


def test_a_connection_in_use_is_closed_once_it_is_free(io: RedisIO, pool: QuickPool) -> None:
    taken = pool.take()
    taken.send_command("CLIENT", "ID")
    number = taken.read_response()
    io.links.drop()
    pool.put_back(taken)
    assert own_id(pool) != number


def test_what_is_sent_only_once_is_left_to_the_driver(settings: Settings) -> None:
    io = RedisIO(settings, patient=False)
    pool_of(io).exchange = None  # type: ignore[method-assign,assignment] # would fail
    assert io.execute("PING") is True


def test_a_fork_has_connections_of_its_own(pool: QuickPool) -> None:
    number = own_id(pool)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, str(own_id(pool)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reading, 20)) != number
    assert own_id(pool) == number
    os.close(reading)
    os.close(writing)
