"""Many greenlets on one connection, against a real server and in either event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.redisio import RedisIO, greenlets
from kcm.redisio.connection import Argument
from kcm.redisio.embedded import EmbeddedServer
from kcm.redisio.greenlets import TooLong
from kcm.redisio.pipelining import LONG_REPLY, PipelinedIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.testing.waiting import PATIENCE, until_on_loop, yield_to_loop
from tests.integration.redisio.gate import Gate
from tests.new_objects import pod
from tests.ports import free_port

T = TypeVar("T")

RunLoop = Callable[[Coroutine[Any, Any, Any]], Any]
PODS = scheme.lookup("pods")


@pytest.fixture
def run_loop() -> RunLoop:
    """Gives a function that runs a coroutine in an event loop of its own."""
    return lambda main: asyncio.run(within_patience(main))


async def within_patience(main: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(PATIENCE):
        return await main


@pytest.fixture
def piped(io: RedisIO, settings: Settings) -> Iterator[PipelinedIO]:
    """Gives the connection under test. It is closed when the event loop has ended."""
    piped = PipelinedIO(settings, name="piped")
    piped.attach()
    yield piped
    piped.close()


def build_gated(gate: Gate, settings: Settings) -> PipelinedIO:
    """Returns a connection of little patience through a gate."""
    gated = Settings(redis_url=gate.url, state_dir=settings.state_dir, socket_timeout=0.5)
    return PipelinedIO(gated, name="piped")


async def in_thread(call: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(call)


async def refuse_thread(call: Callable[[], Any]) -> Any:
    raise AssertionError("this has to go over the link")


async def work(call: Callable[[], T]) -> T:
    return await greenlets.run(call, in_thread)


async def work_on_link(call: Callable[[], T]) -> T:
    """Returns the call's result. Fails if a thread was needed."""
    return await greenlets.run(call, refuse_thread)


def find_link(io: RedisIO) -> dict[str, str] | None:
    """Returns the link as CLIENT LIST shows it while it waits for a pause to end."""
    clients = io.execute("CLIENT LIST")
    return next((c for c in clients if c["name"] == "piped" and "b" in c["flags"]), None)


async def until_linked(piped: PipelinedIO) -> None:
    """Waits until calls go over the link again."""
    threads = 0

    async def count_thread(call: Callable[[], Any]) -> Any:
        nonlocal threads
        threads += 1
        return await in_thread(call)

    before = -1
    while before != threads:
        before = threads
        await greenlets.run(lambda: piped.execute("PING"), count_thread)


def read_created(store: Store) -> list[str]:
    """Returns the names of the pods that were created, one for each time."""
    entries = store.read_changes({PODS: 0}, 0).entries
    return [e.key.partition("/")[2] for e in entries if e.type == "ADDED"]


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

        async def main() -> tuple[Any, Any]:
            return (
                await work_on_link(lambda: piped.execute(*command)),
                await work_on_link(lambda: piped.pipeline([command, ("PING",)])),
            )

        expected = io.execute(*command), io.pipeline([command, ("PING",)])
        given = run_loop(main())
        assert given == expected
        assert type(given[0]) is type(expected[0])

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
    def test_a_key_of_a_wrong_type_is_an_error_once(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop, many: bool
    ) -> None:
        key = io.keys.object_keys("pods")
        io.execute("SET", key, "rubbish")

        def count() -> Any:
            return piped.pipeline([("ZCARD", key)])[0] if many else piped.execute("ZCARD", key)

        with pytest.raises(errors.WrongTypeOfKey):
            run_loop(work(count))
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


class TestBrokenLink:
    def test_calls_that_wait_when_it_is_killed_end_once(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        store = Store(piped)
        names = [f"p{n}" for n in range(30)]

        async def main() -> None:
            await work_on_link(lambda: piped.execute("PING"))
            io.execute("CLIENT PAUSE", 60_000, "WRITE")
            tasks = [
                asyncio.create_task(work(lambda name=name: store.create(pod(name))))  # type: ignore[misc]
                for name in names
            ]
            await until_on_loop(lambda: find_link(io), "the pause of the link")
            link = find_link(io)
            assert link is not None
            io.execute("CLIENT KILL", "ID", link["id"])
            io.execute("CLIENT UNPAUSE")
            created = await asyncio.gather(*tasks)
            assert [obj.name for obj in created] == names
            await until_linked(piped)

        try:
            run_loop(main())
        finally:
            io.execute("CLIENT UNPAUSE")
        assert sorted(read_created(store)) == sorted(names)

    def test_calls_end_once_however_often_it_is_killed(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        store = Store(piped)
        names = [f"p{n}" for n in range(150)]
        created: list[str] = []
        kills = 0

        def kill() -> None:
            nonlocal kills
            for client in io.execute("CLIENT LIST"):
                if client["name"] == "piped":
                    kills += io.execute("CLIENT KILL", "ID", client["id"])

        async def create(some: list[str]) -> None:
            for name in some:
                created.append((await work(lambda name=name: store.create(pod(name)))).name)  # type: ignore[misc]
                if len(created) % 15 == 0:
                    kill()

        async def main() -> None:
            await asyncio.gather(*(create(names[n::15]) for n in range(15)))

        run_loop(main())
        assert kills >= 5
        assert sorted(created) == sorted(names)
        assert sorted(read_created(store)) == sorted(names)

    @pytest.mark.parametrize("is_carried_out", [False, True])
    def test_calls_end_once_when_it_falls_silent(
        self,
        io: RedisIO,
        settings: Settings,
        run_loop: RunLoop,
        tmp_path: Path,
        is_carried_out: bool,
    ) -> None:
        names = [f"p{n}" for n in range(30)]

        async def main() -> None:
            async with Gate(tmp_path / "g", str(settings.socket_path)) as gate:
                piped = build_gated(gate, settings)
                store = Store(piped)
                await work(piped.attach)
                await work_on_link(lambda: piped.execute("PING"))
                if is_carried_out:
                    gate.lose_replies()
                else:
                    gate.fall_silent()
                tasks = [work(lambda n=n: store.create(pod(n))) for n in names]  # type: ignore[misc]
                assert [obj.name for obj in await asyncio.gather(*tasks)] == names
                await until_linked(piped)
                piped.close()

        run_loop(main())
        assert sorted(read_created(Store(io))) == sorted(names)

    def test_one_that_ends_right_after_the_greeting_is_replaced(
        self, io: RedisIO, settings: Settings, run_loop: RunLoop, tmp_path: Path
    ) -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(b"+OK\r\n")

        assert self._ask_past(hang_up, settings, run_loop, tmp_path) == [b"a"] * 5

    def test_one_that_is_refused_unasked_is_replaced(
        self, io: RedisIO, settings: Settings, run_loop: RunLoop, tmp_path: Path
    ) -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"-ERR max number of clients reached\r\n" * 3)

        assert self._ask_past(refuse, settings, run_loop, tmp_path) == [b"a"] * 5

    def test_one_that_sends_no_replies_is_replaced(
        self, io: RedisIO, settings: Settings, run_loop: RunLoop, tmp_path: Path
    ) -> None:
        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await reader.read(1000)

        assert self._ask_past(babble, settings, run_loop, tmp_path) == [b"a"] * 5

    def test_a_server_that_loads_its_data_is_asked_again_by_the_driver(
        self, io: RedisIO, settings: Settings, run_loop: RunLoop, tmp_path: Path
    ) -> None:
        async def load(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(b"+OK\r\n")
            while await reader.read(1000):
                writer.write(b"-LOADING Redis is loading the dataset in memory\r\n" * 5)

        assert self._ask_past(load, settings, run_loop, tmp_path) == [b"a"] * 5

    def _ask_past(
        self, script: Any, settings: Settings, run_loop: RunLoop, tmp_path: Path
    ) -> list[Any]:
        """Returns the replies to five calls of which the first opens a link to the script."""

        async def main() -> list[Any]:
            async with Gate(tmp_path / "g", str(settings.socket_path)) as gate:
                gate.scripts = [script]
                piped = build_gated(gate, settings)
                asked = [work(lambda: piped.execute("ECHO", "a")) for _ in range(5)]
                results = await asyncio.gather(*asked, return_exceptions=True)
                piped.close()
                return list(results)

        return list(run_loop(main()))


def test_while_the_server_is_away_the_loop_goes_on_and_the_link_comes_back(
    run_loop: RunLoop, tmp_path: Path
) -> None:
    server = EmbeddedServer(tmp_path / "s")
    server.start()
    piped = PipelinedIO(Settings(redis_url=server.url, state_dir=server.state_dir), name="piped")
    go_on = threading.Event()
    waiting = 0

    async def in_waiting_thread(call: Callable[[], Any]) -> Any:
        nonlocal waiting

        def wait_and_call() -> Any:
            assert go_on.wait(PATIENCE), "the event loop stood still"
            return call()

        waiting += 1
        return await asyncio.to_thread(wait_and_call)

    async def beat() -> None:
        await until_on_loop(lambda: waiting >= 5, "five calls that wait in threads")
        go_on.set()  # only a loop that goes on comes here

    async def main() -> None:
        await work(lambda: piped.execute("PING"))
        await asyncio.to_thread(server.stop)
        asked = [greenlets.run(lambda: piped.execute("PING"), in_waiting_thread) for _ in range(5)]
        *results, _ = await asyncio.gather(*asked, beat(), return_exceptions=True)
        assert [type(error) for error in results] == [errors.StoreUnavailable] * 5
        await asyncio.to_thread(server.start)
        await until_linked(piped)

    try:
        run_loop(main())
    finally:
        piped.close()
        server.stop()
    assert go_on.is_set()


@pytest.mark.parametrize("where", ["tcp", "unix"])
@pytest.mark.parametrize("user", ["", "default"])
def test_password_and_database_of_the_url_are_used(
    run_loop: RunLoop, tmp_path: Path, where: str, user: str
) -> None:
    port = free_port()
    server = EmbeddedServer(tmp_path / "s", extra=("--port", str(port)))
    server.start()
    RedisIO(Settings(redis_url=server.url)).execute("CONFIG SET", "requirepass", "secret")
    place = f"127.0.0.1:{port}/" if where == "tcp" else f"{server.socket_path}?db="
    scheme_name = "redis" if where == "tcp" else "unix"

    def settings_for(password: str, database: int) -> Settings:
        return Settings(redis_url=f"{scheme_name}://{user}:{password}@{place}{database}")

    try:
        piped = PipelinedIO(settings_for("secret", 3), name="piped")
        run_loop(work_on_link(lambda: piped.execute("SET", "kcm:x", "there")))
        piped.close()
        assert RedisIO(settings_for("secret", 3)).execute("GET", "kcm:x") == b"there"
        assert RedisIO(settings_for("secret", 0)).execute("GET", "kcm:x") is None
        wrong = PipelinedIO(settings_for("wrong", 3))
        with pytest.raises(errors.StoreUnavailable):
            run_loop(work(lambda: wrong.execute("PING")))
        wrong.close()
    finally:
        server.stop()


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
    quota = store.get(scheme.resource_of(ResourceQuota), "default/few")
    assert isinstance(quota, ResourceQuota)
    assert {key: str(used) for key, used in (quota.status.used or {}).items()} == {"pods": "20"}


def test_a_thread_never_uses_the_link(io: RedisIO, piped: PipelinedIO, run_loop: RunLoop) -> None:
    """Whose work is blocked in a thread calls the driver there, not the loop."""

    def block() -> tuple[bytes, int]:
        return greenlets.block(lambda: (piped.execute("ECHO", "a"), threading.get_ident()))

    assert run_loop(work(block))[0] == b"a"
    assert run_loop(work(block))[1] != threading.get_ident()


class TestClose:
    def test_ends_the_link_within_the_loop(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        async def main() -> None:
            io.execute("CLIENT PAUSE", 60_000, "WRITE")
            asked = asyncio.create_task(work(lambda: piped.execute("SET", "kcm:n", 1)))
            await until_on_loop(lambda: find_link(io), "the pause of the link")
            piped.close()
            io.execute("CLIENT UNPAUSE")
            assert await asked is True

        try:
            run_loop(main())
        finally:
            io.execute("CLIENT UNPAUSE")

    def test_may_come_after_the_loop_which_ends_the_link(
        self, io: RedisIO, piped: PipelinedIO, run_loop: RunLoop
    ) -> None:
        run_loop(work_on_link(lambda: piped.execute("PING")))
        piped.driver.connection_pool.disconnect()
        assert "piped" not in [client["name"] for client in io.execute("CLIENT LIST")]
        piped.close()
