"""A term of the server as master is an epoch: what is from an earlier one is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kcm import errors
from kcm.redisio import RedisIO
from kcm.redisio.pipelining import PipelinedIO
from kcm.redisio.quick import QuickPool
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import until
from tests.integration.redisio.clients import PODS, Client, stored_versions
from tests.integration.redisio.links import RunLoop, in_thread, work, work_on_link
from tests.integration.redisio.replicas import Replicas
from tests.new_objects import pod


@pytest.fixture
def client(replicas: Replicas) -> Iterator[Client]:
    """Gives a client whose writes are replicated so far."""
    client = Client(replicas, "client")
    client.create("first")
    client.acquire()
    client.catch_up()
    until(lambda: all(s.has_all_of(replicas.master) for s in replicas.servers[1:]), "replication")
    yield client
    client.io.close()


def test_there_and_back_are_three_epochs(replicas: Replicas, client: Client) -> None:
    first, second, _ = replicas.servers
    epochs = [client.io.epoch]
    for server in (second, first):
        replicas.fail_over(server)
        client.lead()
        version = client.store.resource_version()
        assert client.create(f"on-{server.name}-{len(epochs)}") > version + 1
        epochs.append(client.io.epoch)
        with pytest.raises(errors.Fenced):
            client.create("late", client.fence)
        client.acquire()
    assert len(set(epochs)) == 3
    client.catch_up()
    assert client.cache.versions == stored_versions(first)


def test_a_master_that_comes_back_is_noticed_although_nobody_asked_the_other(
    replicas: Replicas, client: Client
) -> None:
    first, second, _ = replicas.servers
    before, position = client.io.epoch, client.store.resource_version()
    second.promote()
    replicas.master = second
    client.create("lost")
    replicas.follow()
    replicas.fail_over(first)
    with pytest.raises(errors.Fenced):
        client.create("late", client.fence)
    assert client.io.epoch != before
    assert client.store.read_changes({PODS: position}, 0).gone == {PODS}
    client.catch_up()
    assert set(client.cache.versions) == {"first"}


def test_who_only_reads_begins_the_epoch(replicas: Replicas, client: Client) -> None:
    replicas.master = second = replicas.servers[1]
    second.promote()
    client.create("lost")
    client.catch_up()
    replicas.follow()
    client.lead()
    client.io.drop()
    assert client.store.last_rvs([PODS])[PODS] > max(client.cache.versions.values())
    client.catch_up()
    assert set(client.cache.versions) == {"first"}


def test_what_a_lost_master_gave_is_never_given_again(replicas: Replicas, client: Client) -> None:
    first, second, third = replicas.servers
    third.promote()
    replicas.master = second
    second.promote()
    client.lead()
    client.io.drop()
    lost = [client.create(f"lost-{number}") for number in range(3)]
    token = client.acquire()
    replicas.master = first  # which never knew of another master
    client.lead()
    client.io.drop()
    again = [client.create(f"again-{number}") for number in range(3)]
    assert min(again) > max(lost)
    assert int(client.acquire()) > int(token)
    client.catch_up()
    assert client.cache.versions == stored_versions(first)


def test_a_link_that_is_in_use_is_closed_once_it_is_free(
    replicas: Replicas, client: Client
) -> None:
    replicas.master = second = replicas.servers[1]
    second.promote()
    pool = client.io.driver.connection_pool
    assert isinstance(pool, QuickPool)
    in_use = pool.take()
    client.lead()
    client.create("new")
    pool.put_back(in_use)
    assert client.store.count(PODS) == len(stored_versions(second)) == 2


def test_a_page_of_another_epoch_is_in_no_list(replicas: Replicas, client: Client) -> None:
    first, second, _ = replicas.servers
    second.promote()
    client.create("lost")  # the former master does not know yet
    client.lead(second)
    client.io.drop()
    client.create("new")
    pages = client.store.list_all(PODS).objects
    client.lead(first)  # by a sentinel that does not know yet
    client.io.drop()
    with pytest.raises(errors.EpochChanged):
        list(pages)


def test_a_list_that_begins_is_of_the_new_epoch(replicas: Replicas, client: Client) -> None:
    second = replicas.servers[1]
    replicas.fail_over(second)
    client.lead()
    Client(replicas, "other").create("new")
    assert {one.name for one in client.store.list(PODS).items} == {"first", "new"}


def test_all_pages_of_a_list_that_begins_are_of_the_new_epoch(
    replicas: Replicas, client: Client
) -> None:
    replicas.fail_over(replicas.servers[1])
    client.lead()
    Client(replicas, "other").create("new")
    listed = client.store.list_all(PODS)
    assert {pod.name for pod in listed.objects} == {"first", "new"}


def test_what_a_server_of_another_term_says_is_no_proof_of_a_fresh_cache(
    replicas: Replicas, client: Client
) -> None:
    first, second, _ = replicas.servers
    second.promote()
    newest, epoch = client.create("new"), client.io.epoch  # at the former master
    client.lead(second)
    client.io.drop()
    client.io.driver.ping()
    client.lead(first)  # the next connection, while the present one stays
    assert client.store.last_rvs([PODS])[PODS] == newest
    assert client.io.epoch == epoch


def connect_piped(replicas: Replicas) -> PipelinedIO:
    return PipelinedIO(
        Settings(redis_url=f"unix://{replicas.link}", state_dir=replicas.folder), name="piped"
    )


@pytest.mark.parametrize("demoted", [True, False])
def test_a_shared_link_leaves_a_former_master(
    replicas: Replicas, client: Client, run_loop: RunLoop, demoted: bool
) -> None:
    piped = connect_piped(replicas)
    store = Store(piped)

    async def main() -> None:
        await work(lambda: store.create(pod("one")))
        replicas.master = second = replicas.servers[1]
        await in_thread(lambda: until(lambda: second.has_all_of(replicas.servers[0]), "it"))
        second.promote()
        replicas.lead_to(second)
        if demoted:
            replicas.servers[0].client.replicaof("127.0.0.1", "1")
            with pytest.raises(errors.WritesRefused):
                await work(lambda: store.create(pod("refused")))
        else:
            client.lead()
            client.io.drop()
            await in_thread(lambda: client.create("elsewhere"))
            await in_thread(piped.drop)
        await work(lambda: store.create(pod("two")))
        assert "two" in stored_versions(second)
        await asyncio.sleep(0)
        await work_on_link(store.resource_version)

    run_loop(main())
    piped.close()


def test_a_newcomer_knows_no_earlier_epoch(replicas: Replicas, client: Client) -> None:
    newcomer: RedisIO = replicas.connect()
    newcomer.attach()
    assert newcomer.epoch == client.io.epoch
    newcomer.close()
