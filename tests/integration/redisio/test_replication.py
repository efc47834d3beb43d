"""Writes that are acknowledged once replicas have them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from kcm import errors
from kcm.apiserver.objects import status
from kcm.redisio import RedisIO
from kcm.redisio.checks import check_server
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from kcm.store import Store
from tests.integration.redisio.clients import PODS, stored_versions
from tests.integration.redisio.links import RunLoop, work
from tests.integration.redisio.replicas import Replicas
from tests.new_objects import pod


def replicated(replicas: Replicas, least: int = 2) -> Settings:
    """Returns settings under which so many replicas must have a write, within 0.4 s."""
    return Settings(
        redis_url=f"unix://{replicas.link}",
        redis_durability="replicated",
        redis_replicas=least,
        socket_timeout=0.6,
    )


@pytest.fixture
def io(replicas: Replicas) -> Iterator[RedisIO]:
    with closing(RedisIO(replicated(replicas))) as io:
        yield io


@contextmanager
def one_replica_away(replicas: Replicas) -> Iterator[None]:
    away = replicas.servers[1]
    away.client.replicaof("127.0.0.1", "1")
    try:
        yield
    finally:
        away.replicate(replicas.master)


def test_what_is_acknowledged_is_on_all_replicas(replicas: Replicas, io: RedisIO) -> None:
    store = Store(io)
    for number in range(20):
        store.create(pod(f"p{number}"))
        for server in replicas.servers:
            assert f"p{number}" in stored_versions(server)


def test_a_write_that_misses_a_replica_may_have_happened(replicas: Replicas, io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("before"))
    with one_replica_away(replicas):
        with pytest.raises(errors.NotReplicated, match=r"1 of 2 replicas had it after 0\.4 s"):
            store.create(pod("maybe"))
        assert store.get(PODS, "default/maybe")


def test_a_process_that_has_just_come_misses_a_replica_that_has_left(replicas: Replicas) -> None:
    with closing(RedisIO(replicated(replicas, least=1))) as former:
        Store(former).create(pod("before"))
    with (
        one_replica_away(replicas),
        closing(RedisIO(replicated(replicas, least=1))) as io,
        pytest.raises(errors.NotReplicated, match="1 of 2 replicas"),
    ):
        Store(io).create(pod("maybe"))


def test_a_write_of_another_term_is_not_confirmed(replicas: Replicas, io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("before"))
    with pytest.raises(errors.NotReplicated, match="another server is the master now"):
        io.confirm("the term before")


def test_a_server_that_does_not_answer_confirms_nothing(replicas: Replicas, io: RedisIO) -> None:
    io.attach()
    io.links.drop()
    replicas.link.unlink()
    try:
        with pytest.raises(errors.NotReplicated, match="Redis did not answer"):
            io.confirm(io.term)
    finally:
        replicas.lead_to(replicas.master)


def test_writes_of_many_threads_share_a_wait(replicas: Replicas, io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("before"))
    replicas.master.client.config_resetstat()
    begin = threading.Barrier(8)

    def create(number: int) -> None:
        begin.wait()
        for repeat in range(5):
            store.create(pod(f"p{number}-{repeat}"))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waits = replicas.master.client.info("commandstats")["cmdstat_wait"]["calls"]
    assert 1 <= waits < 40
    assert all(len(stored_versions(server)) == 41 for server in replicas.servers)


def test_greenlets_wait_for_replicas_too(replicas: Replicas, run_loop: RunLoop) -> None:
    piped = PipelinedIO(replicated(replicas), name="piped")
    store = Store(piped)

    async def main() -> None:
        await work(lambda: store.create(pod("one")))
        assert all("one" in stored_versions(server) for server in replicas.servers)
        with one_replica_away(replicas), pytest.raises(errors.NotReplicated):
            await work(lambda: store.create(pod("maybe")))

    run_loop(main())
    piped.close()


def test_a_client_is_told_that_it_may_have_happened() -> None:
    told = status.failure(errors.NotReplicated("Timeout: the write was made, and may be lost"))
    assert (told["code"], told["reason"]) == (504, "Timeout")
    assert "details" not in told  # a time to try again would make client-go do so


def test_a_server_that_takes_writes_without_replicas_is_refused(
    replicas: Replicas, io: RedisIO
) -> None:
    with pytest.raises(errors.ConfigurationError, match="CONFIG SET min-replicas-to-write 2"):
        check_server(io)
    replicas.master.client.config_set("min-replicas-to-write", "2")
    try:
        check_server(io)
    finally:
        replicas.master.client.config_set("min-replicas-to-write", "0")
