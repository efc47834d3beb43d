"""Tests many greenlets on one connection, against a real server and in either event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.redisio import RedisIO, greenlets
from kcm.redisio.commands import Argument
from kcm.redisio.greenlets import TooLong
from kcm.redisio.pipelining import LONG_REPLY, PipelinedIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.testing.waiting import PATIENCE, until_on_loop, yield_to_loop
from tests.integration.redisio.gate import Gate
from tests.integration.redisio.links import (
    PODS,
    RunLoop,
    build_gated,
    find_link,
    until_linked,
    work,
    work_on_link,
)
from tests.new_objects import pod


class TestReplies:
    def test_reach_those_who_asked_in_order(self, piped: PipelinedIO, run_loop: RunLoop) -> None:
        def ask(n: int) -> list[bytes]:
            said = [piped.execute("ECHO", f"{n}-{i}") for i in range(5)]
            return [*said, *piped.pipeline([("ECHO", f"{n}-5"), ("ECHO", f"{n}-6")])]

        async def main() -> list[list[bytes]]:
            asked = [work_on_link(lambda n=n: ask(n)) for n in range(200)]  # type: ignore[misc]
            return await asyncio.gather(*asked)

        assert run_loop(main()) == [[f"{n}-{i}".encode() for i in range(7)] for n in range(200)]

    def test_go_to_work_and_threads_alike(self, piped: PipelinedIO, run_loop: RunLoop) -> None:
        async def main() -> list[Any]:
            greenlets_ask = [
                work_on_link(lambda n=n: piped.execute("ECHO", n))  # type: ignore[misc]
                for n in range(50)
            ]
            threads_ask = [asyncio.to_thread(piped.execute, "ECHO", n) for n in range(50, 100)]
            return await asyncio.gather(*greenlets_ask, *threads_ask)

        assert run_loop(main()) == [str(n).encode() for n in range(100)]

    @pytest.mark.parametrize(
        "command",
        [
            ("PING",),
            ("GET", "kcm:none"),
            ("SET", "kcm:x", 1),
            ("SET", "kcm:x", 1.5),
            ("HGETALL", "kcm:hash"),
            ("HGETALL", "kcm:none"),
            ("HGET", "kcm:hash", "a"),
            ("HMGET", "kcm:hash", "a", "c"),
            ("SMEMBERS", "kcm:set"),
            ("ZRANGE", "kcm:sorted", 0, -1, "WITHSCORES"),
            ("ZSCORE", "kcm:sorted", "a"),
            ("ZCARD", "kcm:sorted"),
            ("XRANGE", "kcm:stream", "-", "+"),
            ("XREAD", "COUNT", 5, "STREAMS", "kcm:stream", "0"),
            ("XINFO STREAM", "kcm:stream"),
            ("TYPE", "kcm:hash"),
            ("EXISTS", "kcm:hash"),
            ("CONFIG GET", "maxmemory"),
            ("SCRIPT LOAD", "return 1"),
            ("SCRIPT EXISTS", "none"),
            ("EVAL", "return {1, 'a', {false, 'b'}}", 0),
            (b"GET", b"kcm:none"),
        ],
        ids=lambda command: str(command[0]),
    )
    def test_are_parsed_as_the_driver_does(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop, command: tuple[Argument, ...]
    ) -> None:
        io.execute("HSET", "kcm:hash", "a", "1", "b", "2")
        io.execute("SADD", "kcm:set", "a", "b")
        io.execute("ZADD", "kcm:sorted", 1, "a", 2.5, "b")
        io.execute("XADD", "kcm:stream", "1-1", "a", "1")

        async def main() -> tuple[Any, ...]:
            return (
                await work_on_link(lambda: piped.execute(*command)),
                await work_on_link(lambda: piped.pipeline([command, ("PING",)])),
                await work_on_link(lambda: piped.pipeline_each([command, ("PING",)])),
            )

        several = [command, ("PING",)]
        expected = io.execute(*command), io.pipeline(several), io.pipeline_each(several)
        given = run_loop(main())
        assert given == expected
        assert type(given[0]) is type(expected[0])

    def test_of_which_some_are_errors_come_as_from_the_driver(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        io.execute("HSET", "kcm:hash", "a", "1")
        commands = [("HGET", "kcm:hash", "a"), ("GET", "kcm:hash"), ("LPUSH",)]
        given = run_loop(work_on_link(lambda: piped.pipeline_each(commands)))
        expected = io.pipeline_each(commands)
        assert given[0] == expected[0] == b"1"
        assert [type(one) for one in given] == [type(one) for one in expected]
        assert [str(one) for one in given] == [str(one) for one in expected]

    def test_come_for_keys_that_are_no_utf8(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        io.execute("SET", b"kcm:\xff\xfe", "1")
        name = b"kcm:\xff\xfe".decode("utf-8", "surrogateescape")
        assert run_loop(work_on_link(lambda: piped.execute("GET", name))) == b"1"
        assert run_loop(work(lambda: list(piped.scan("kcm:\\\xff*")))) == list(
            io.scan("kcm:\\\xff*")
        )

    def test_of_other_calls_are_those_of_a_thread(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        def ask() -> tuple[Any, ...]:
            return (
                piped.info("server")["run_id"],
                piped.pipeline_each([("PING",), ("LPUSH",)])[0],
                sorted(piped.scan("kcm:*")) == sorted(io.scan("kcm:*")),
                abs(piped.now() - io.now()) < PATIENCE,
                piped.counter() == io.counter(),
            )

        run_id = io.info("server")["run_id"]
        assert run_loop(work(ask)) == (run_id, True, True, True, True)


class TestErrors:
    def test_scripts_that_are_gone_are_loaded_again(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        io.execute("SCRIPT FLUSH")

        async def main() -> list[list[str]]:
            calls = [work(lambda: piped.call("expect_pending", "kcm:none")) for _ in range(20)]
            return await asyncio.gather(*calls)

        assert run_loop(main()) == [["OK"]] * 20

    def test_an_emptied_server_is_attached_to_anew(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        store = Store(piped)
        run_loop(work(lambda: store.create(pod("a"))))
        io.execute("FLUSHALL")
        run_loop(work(lambda: store.create(pod("b"))))
        assert [obj.name for obj in store.list(PODS).items] == ["b"]

    @pytest.mark.parametrize("many", [False, True])
    def test_a_key_of_a_wrong_type_is_named_until_it_is_deleted(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop, many: bool
    ) -> None:
        key = io.keys.object_keys("pods")
        io.execute("SET", key, "rubbish")

        def count() -> Any:
            return piped.pipeline([("ZCARD", key)])[0] if many else piped.execute("ZCARD", key)

        with pytest.raises(errors.WrongTypeOfKey, match=key):
            run_loop(work(count))
        io.execute("DEL", key)
        assert run_loop(work(count)) == 0

    def test_a_full_server_is_named(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        store = Store(piped)
        io.execute("CONFIG SET", "maxmemory", 1)
        try:
            with pytest.raises(errors.OutOfMemory):
                run_loop(work(lambda: store.create(pod("a"))))
            with pytest.raises(errors.OutOfMemory):
                run_loop(work_on_link(lambda: piped.execute("SET", "kcm:x", "1")))
        finally:
            io.execute("CONFIG SET", "maxmemory", 0)

    def test_one_error_leaves_the_replies_to_others_in_order(
        self, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        def ask(n: int) -> Any:
            return piped.pipeline([("ECHO", n), ("NO-SUCH",)] if n % 2 else [("ECHO", n)])

        async def main() -> list[Any]:
            asked = [work_on_link(lambda n=n: ask(n)) for n in range(20)]  # type: ignore[misc]
            return await asyncio.gather(*asked, return_exceptions=True)

        results = run_loop(main())
        assert results[::2] == [[str(n).encode()] for n in range(0, 20, 2)]
        assert all("unknown command" in str(error) for error in results[1::2])


class TestCancelled:
    def test_replies_to_others_stay_in_order(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        def add(n: int) -> tuple[int, bytes]:
            return piped.execute("INCRBY", f"kcm:n{n}", n), piped.execute("ECHO", n)

        async def main() -> None:
            await work_on_link(lambda: piped.execute("PING"))
            io.execute("CLIENT PAUSE", 60_000, "WRITE")
            tasks = [
                asyncio.create_task(work_on_link(lambda n=n: add(n)))  # type: ignore[misc]
                for n in range(1, 10)
            ]
            await until_on_loop(lambda: find_link(io), "the pause of the link")
            for task in tasks[::2]:
                task.cancel()
            await yield_to_loop()
            io.execute("CLIENT UNPAUSE")
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert results[1::2] == [(n, str(n).encode()) for n in range(2, 10, 2)]
            assert all(isinstance(error, asyncio.CancelledError) for error in results[::2])
            assert await work_on_link(lambda: piped.execute("ECHO", "after")) == b"after"

        try:
            run_loop(main())
        finally:
            io.execute("CLIENT UNPAUSE")

    def test_an_attempt_to_connect_that_nobody_waits_for_harms_nobody(
        self, io: RedisIO, settings: Settings, run_loop: RunLoop, tmp_path: Path
    ) -> None:
        async def main() -> None:
            go_on, passed = asyncio.Event(), asyncio.Event()

            async def forward_late(*streams: Any) -> None:
                await go_on.wait()
                passed.set()
                await gate.forward(*streams)

            async with Gate(tmp_path / "g", str(settings.socket_path)) as gate:
                gate.scripts = [forward_late]
                piped = build_gated(gate, settings)
                asked = asyncio.create_task(work(lambda: piped.execute("PING")))
                await until_on_loop(lambda: gate.connections, "the connection")
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
                go_on.set()
                await passed.wait()
                await work(lambda: piped.execute("PING"))
                gate.drop()
                assert await work(lambda: piped.execute("ECHO", "a")) == b"a"
                await until_linked(piped)
                piped.close()

        run_loop(main())


class TestTooLong:
    def test_is_a_long_reply_before_anything_was_written(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        io.execute("SET", "kcm:long", "x" * (LONG_REPLY + 1))
        io.execute("SET", "kcm:half", "x" * (LONG_REPLY // 2 + 1))
        with pytest.raises(TooLong):
            run_loop(work_on_link(lambda: piped.execute("GET", "kcm:long")))
        with pytest.raises(TooLong):
            run_loop(work_on_link(lambda: piped.pipeline([("GET", "kcm:half")] * 2)))
        assert run_loop(work_on_link(lambda: piped.execute("GET", "kcm:half")))
        assert len(piped.execute("GET", "kcm:long")) > LONG_REPLY

    def test_is_no_reply_after_a_write(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        io.execute("SET", "kcm:long", "x" * (LONG_REPLY + 1))
        store = Store(piped)

        def write_and_read() -> int:
            store.create(pod("a"))
            return len(piped.execute("GET", "kcm:long"))

        assert run_loop(work(write_and_read)) > LONG_REPLY

    def test_is_no_reply_after_a_write_that_was_charged(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        io.execute("SET", "kcm:long", "x" * (LONG_REPLY + 1))
        store = Store(piped)
        limit_pods(store, 1)

        def write_and_read() -> int:
            store.create(pod("a"))
            return len(piped.execute("GET", "kcm:long"))

        assert run_loop(work(write_and_read)) > LONG_REPLY


def limit_pods(store: Store, count: int) -> None:
    """Creates a quota of which nothing is used yet."""
    namespaces.ensure(store, "default")
    amounts = {"pods": Quantity(count)}
    meta = ObjectMeta(name="few", namespace="default")
    quota = store.create(ResourceQuota(metadata=meta, spec=ResourceQuotaSpec(hard=amounts)))
    status = ResourceQuotaStatus(hard=amounts, used={"pods": Quantity(0)})
    store.update_status(quota.with_status(status))


def test_charged_writes_of_many_greenlets_neither_wait_for_ever_nor_take_too_much(
    piped: PipelinedIO, run_loop: RunLoop
) -> None:
    store = Store(piped)
    limit_pods(store, 20)

    async def main() -> list[Any]:
        writes = [work(lambda n=n: store.create(pod(f"p{n}"))) for n in range(60)]  # type: ignore[misc]
        return await asyncio.gather(*writes, return_exceptions=True)

    refused = [result for result in run_loop(main()) if isinstance(result, BaseException)]
    assert [type(error) for error in refused] == [errors.Forbidden] * 40
    assert store.count(PODS) == 20
    quota = store.get(ResourceQuota.resource, "default/few")
    assert isinstance(quota, ResourceQuota)
    assert {key: str(used) for key, used in (quota.status.used or {}).items()} == {"pods": "20"}


def test_a_thread_never_uses_the_link(io: RedisIO, piped: PipelinedIO, run_loop: RunLoop) -> None:
    """Work that is blocked in a thread calls the driver there, not the event loop's link."""

    def block() -> tuple[bytes, int]:
        return greenlets.block(lambda: (piped.execute("ECHO", "a"), threading.get_ident()))

    assert run_loop(work(block))[0] == b"a"
    assert run_loop(work(block))[1] != threading.get_ident()
