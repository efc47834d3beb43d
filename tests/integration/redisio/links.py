"""Calls over the link under test, and what is seen of the link."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kcm.api.scheme import BUILT_IN
from kcm.redisio import RedisIO, greenlets
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import PATIENCE
from tests.integration.redisio.gate import Gate

T = TypeVar("T")

RunLoop = Callable[[Coroutine[Any, Any, Any]], Any]
PODS = BUILT_IN.lookup("pods")


async def within_patience(main: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(PATIENCE):
        return await main


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
