"""A Redis that takes no writes: it has become a replica, or misses replicas of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kcm import errors
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.store import Store
from tests.conftest import server_binary
from tests.new_objects import pod


@pytest.fixture(scope="module")
def redis_server() -> Iterator[EmbeddedServer]:
    """Gives a server of its own: one that was a replica is never quite as it was."""
    folder = Path(tempfile.mkdtemp(prefix="kcm-"))
    server = EmbeddedServer(folder, binary=server_binary())
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder)


@contextmanager
def demoted(io: RedisIO) -> Iterator[None]:
    """Makes the server the replica of one that does not exist."""
    io.execute("REPLICAOF", "127.0.0.1", "1")
    try:
        yield
    finally:
        io.execute("REPLICAOF", "NO", "ONE")


@contextmanager
def without_replicas(io: RedisIO) -> Iterator[None]:
    """Lets the server want a replica that it does not have."""
    io.execute("CONFIG SET", "min-replicas-to-write", "1")
    try:
        yield
    finally:
        io.execute("CONFIG SET", "min-replicas-to-write", "0")


@pytest.mark.parametrize("refusing", [demoted, without_replicas])
def test_a_refused_write_may_be_tried_again(
    io: RedisIO, refusing: Callable[[RedisIO], AbstractContextManager[None]]
) -> None:
    store = Store(io)
    store.create(pod("before"))
    with refusing(io):
        for _ in range(2):
            with pytest.raises(errors.WritesRefused, match="look at its role and replicas"):
                store.create(pod("meanwhile"))
    assert store.create(pod("meanwhile")).uid


def test_a_link_to_a_demoted_server_is_not_used_again(io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("before"))
    link = io.execute("CLIENT ID")
    with demoted(io), pytest.raises(errors.WritesRefused):
        store.create(pod("meanwhile"))
    assert io.execute("CLIENT ID") != link


def test_links_to_a_master_without_replicas_are_closed_now_and_then(io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("before"))
    links = set()
    with without_replicas(io):
        for _ in range(5):
            with pytest.raises(errors.WritesRefused):
                store.create(pod("meanwhile"))
            links.add(io.execute("CLIENT ID"))
    assert len(links) == 1
