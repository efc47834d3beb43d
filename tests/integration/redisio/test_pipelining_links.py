"""The connection of many greenlets when the link breaks, the server is away, or all ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.redisio import RedisIO, greenlets
from kcm.redisio.embedded import EmbeddedServer
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import PATIENCE, until_on_loop
from tests.integration.redisio.gate import Gate
from tests.integration.redisio.links import (
    RunLoop,
    build_gated,
    find_link,
    read_created,
    until_linked,
    work,
    work_on_link,
)
from tests.new_objects import pod
from tests.ports import free_port


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
        names = [f"p{n}" for n in range(240)]
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
                if len(created) % 30 == 0:  # a call gives up when it was cut off four times
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
