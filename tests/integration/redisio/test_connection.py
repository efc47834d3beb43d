"""Tests calls, epochs and lost replies against a real server."""

from __future__ import annotations

import resource
from typing import Any

import pytest
import redis

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.redisio import Links, RedisIO, scripts
from kcm.redisio.embedded import EmbeddedServer
from kcm.redisio.quick import LinkError, QuickPool
from kcm.settings import Settings
from kcm.store import Store
from tests.misconf import unable_to_persist
from tests.new_objects import pod

PODS = BUILT_IN.lookup("pods")


def test_a_first_call_loads_the_scripts(settings: Settings) -> None:
    fresh = RedisIO(settings)
    fresh.execute("SCRIPT FLUSH")
    fresh.execute("FLUSHALL")
    assert fresh.call("expect_pending", "kcm:none") == ["OK"]


def test_a_script_flush_goes_unnoticed(io: RedisIO) -> None:
    io.execute("SCRIPT FLUSH")
    assert io.call("expect_pending", "kcm:none") == ["OK"]


def test_newer_data_is_refused(io: RedisIO, settings: Settings) -> None:
    io.execute("HSET", io.keys.meta(), "format", 99)
    with pytest.raises(errors.ConfigurationError, match="format 99, newer than format 1"):
        RedisIO(settings).attach()


def test_an_answer_is_repeated_for_a_repeated_call(io: RedisIO) -> None:
    store = Store(io)
    item = store.build_create(pod("a"))
    first = store.write([item], call_id="c-1")[0]
    store.delete(PODS, "default/a")
    again = store.write([item], call_id="c-1")[0]
    assert (again.status, again.detail) == (first.status, first.detail)
    assert store.count(PODS) == 0


def another_run(io: RedisIO) -> None:
    """Makes the server look restarted: another run id, and no scripts."""
    io.execute("HSET", io.keys.meta(), "run_id", "another-run")
    io.execute("SCRIPT FLUSH")


class TestEpoch:
    def test_a_new_run_moves_the_counters_and_voids_positions(
        self, io: RedisIO, settings: Settings
    ) -> None:
        store = Store(io)
        before = int(store.create(pod("a")).metadata.resource_version or 0)
        another_run(io)
        after = int(store.create(pod("b")).metadata.resource_version or 0)
        assert after > before + 1
        assert PODS in store.read_changes({PODS: before}, 0).gone
        assert store.last_rvs([PODS])[PODS] == after

    def test_tokens_of_the_run_before_open_nothing(self, io: RedisIO) -> None:
        from kcm.redisio import Fence
        from kcm.store import Conditions

        store = Store(io)
        record = io.keys.queue("q", "running")
        io.execute("HSET", record, "k", "5")
        another_run(io)
        with pytest.raises(errors.Fenced):
            store.create(pod("a"), Conditions(fence=Fence(record, "k", "5")))

    def test_a_restarted_server_starts_a_new_epoch_by_itself(self, tmp_path: Any) -> None:
        server = EmbeddedServer(tmp_path / "s")
        server.start()
        try:
            io = RedisIO(Settings(redis_url=server.url))
            store = Store(io)
            first = store.create(pod("a"))
            server.stop()
            server.start()
            second = store.create(pod("b"))
            assert store.count(PODS) == 2
            gap = int(second.metadata.resource_version or 0) - int(
                first.metadata.resource_version or 0
            )
            assert gap > 1_000_000
        finally:
            server.stop()


class TestEmptied:
    """Tests a server that lost all its data but has the same run id."""

    def test_positions_of_before_are_void_although_the_counter_began_anew(
        self, io: RedisIO, settings: Settings
    ) -> None:
        store = Store(io)
        for name in "abc":
            store.create(pod(name))
        before = store.resource_version()
        io.execute("FLUSHALL")
        newcomer = Store(RedisIO(settings))
        first = newcomer.create(pod("d"))
        assert int(first.metadata.resource_version or 0) < before
        assert store.read_changes({PODS: before}, 0).gone == {PODS}
        assert store.read_changes({PODS: before}, 0).gone == {PODS}
        second = store.create(pod("e"))
        assert int(second.metadata.resource_version or 0) > before
        listed = store.list(PODS)
        assert [item.name for item in listed.items] == ["d", "e"]
        assert store.read_changes({PODS: listed.resource_version}, 0).gone == frozenset()

    def test_an_idle_reader_begins_the_epoch_itself(self, io: RedisIO) -> None:
        store = Store(io)
        store.create(pod("a"))
        before = store.resource_version()
        io.execute("FLUSHALL")
        assert store.read_changes({PODS: before}, 0).gone == {PODS}
        assert store.resource_version() > before

    def test_tokens_of_before_open_nothing_although_they_are_given_again(
        self, io: RedisIO, settings: Settings
    ) -> None:
        from kcm.coordination import FencedLease
        from kcm.store import Conditions

        old = FencedLease(io, "x", "old")
        assert old.try_acquire()
        fence = old.fence
        io.execute("FLUSHALL")
        new = FencedLease(RedisIO(settings), "x", "new")
        assert new.try_acquire()
        assert new.fence.token == fence.token
        with pytest.raises(errors.Fenced):
            Store(io).create(pod("a"), Conditions(fence=fence))
        assert new.try_acquire()
        assert new.fence.token != fence.token

    def test_a_process_tells_once_and_the_store_counts_once(
        self,
        io: RedisIO,
        settings: Settings,
        capsys: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        links = Links()
        io, other = (RedisIO(settings, links=links) for _ in range(2))
        for one in (io, other):
            one.attach()
        io.execute("FLUSHALL")
        for _ in range(2):
            assert io.call("expect_pending", "kcm:none") == ["OK"]
            assert other.call("expect_pending", "kcm:none") == ["OK"]
        shown = capsys.readouterr()
        # Logs go to the standard loggers once a control plane ran in this process.
        told = shown.out + shown.err + caplog.text
        assert told.count("The store was emptied") == 1
        assert io.execute("HGET", io.keys.store_stats(), "emptied") == b"1"

    @pytest.mark.parametrize("damage", [("DEL",), ("SET", "rubbish"), ("LPUSH", "rubbish")])
    @pytest.mark.parametrize("key", ["rv", "token", "meta"])
    def test_a_counter_that_was_lost_goes_on_beyond_what_it_gave(
        self, io: RedisIO, key: str, damage: tuple[str, ...]
    ) -> None:
        store = Store(io)
        store.create(pod("a"))
        before = store.resource_version()
        command, *value = damage
        io.execute("DEL", f"kcm:{key}")
        io.execute(command, f"kcm:{key}", *value)
        created = store.create(pod("b"))
        assert int(created.metadata.resource_version or 0) > before
        assert store.read_changes({PODS: before}, 0).gone == {PODS}
        assert store.count(PODS) == 2


class _DropsReplies:
    """Wraps the pool: on demand the connection fails when a script has run, before its reply."""

    def __init__(self, io: RedisIO) -> None:
        pool = io.driver.connection_pool
        assert isinstance(pool, QuickPool)
        self._original = pool.exchange
        self.drop_next = False
        self.dropped = 0
        pool.exchange = self  # type: ignore[method-assign] # the fault we inject

    def __call__(self, packed: bytes, count: int) -> list[Any]:
        replies = self._original(packed, count)
        if b"EVALSHA" in packed and self.drop_next:
            self.drop_next = False
            self.dropped += 1
            raise LinkError("the reply was dropped")
        return replies


def test_a_write_whose_reply_is_lost_happens_once(io: RedisIO) -> None:
    """The driver sends the command again whose reply was lost."""
    store = Store(io)
    faults = _DropsReplies(io)
    faults.drop_next = True
    created = store.create(pod("a"))
    faults.drop_next = True
    labelled = store.patch(PODS, "default/a", {"metadata": {"labels": {"x": "y"}}})
    faults.drop_next = True
    store.delete(PODS, "default/a")
    assert faults.dropped == 3
    assert [c.type for c in store.read_changes({PODS: 0}, 0).entries] == [
        "ADDED",
        "MODIFIED",
        "DELETED",
    ]
    assert int(labelled.metadata.resource_version or 0) == (
        int(created.metadata.resource_version or 0) + 1
    )


class TestErrors:
    def test_a_server_that_is_away_is_a_temporary_error(self, tmp_path: Any) -> None:
        io = RedisIO(Settings(redis_url=f"unix://{tmp_path}/nobody.sock"))
        with pytest.raises(errors.StoreUnavailable, match="does not answer"):
            io.execute("PING")

    def test_a_full_server_refuses_whole_writes_and_recovers(self, io: RedisIO) -> None:
        store = Store(io)
        store.create(pod("a"))
        io.execute("CONFIG SET", "maxmemory", 1)
        try:
            with pytest.raises(errors.OutOfMemory):
                store.create(pod("b"))
        finally:
            io.execute("CONFIG SET", "maxmemory", 0)
        assert store.count(PODS) == 1
        assert len(store.read_changes({PODS: 0}, 0).entries) == 1
        store.create(pod("b"))

    def test_a_server_that_cannot_persist_refuses_and_recovers(self, io: RedisIO) -> None:
        store = Store(io)
        store.create(pod("a"))
        with unable_to_persist(io), pytest.raises(errors.StorageFull, match="disk"):
            store.create(pod("b"))
        assert store.count(PODS) == 1
        store.create(pod("b"))

    def test_the_driver_raises_its_own_errors_nowhere(self, io: RedisIO) -> None:
        io.execute("SET", "kcm:x", "1")
        with pytest.raises(errors.KcmError, match="WRONGTYPE"):
            io.execute("LPUSH", "kcm:x", "1")
        assert not issubclass(errors.KcmError, redis.exceptions.RedisError)


def test_every_script_loads(io: RedisIO) -> None:
    for name in scripts.names():
        assert io.execute("SCRIPT LOAD", scripts.load(name).text)


def test_a_connection_for_which_there_is_no_descriptor_is_a_store_that_is_away(io: RedisIO) -> None:
    io.driver.connection_pool.disconnect()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
        with pytest.raises(errors.StoreUnavailable):
            io.execute("PING")
        with pytest.raises(errors.StoreUnavailable):
            RedisIO(io.settings).execute("PING")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert io.execute("PING")


def test_clients_with_the_same_links_close_their_idle_connections_together(
    settings: Settings,
) -> None:
    links = Links()
    together = [RedisIO(settings, links=links) for _ in range(2)]
    alone = RedisIO(settings)
    clients = [*together, alone]
    names = [client.execute("CLIENT ID") for client in clients]
    links.drop_idle()
    again = [client.execute("CLIENT ID") for client in clients]
    assert [one == other for one, other in zip(names, again, strict=True)] == [False, False, True]
    for client in clients:
        client.close()
