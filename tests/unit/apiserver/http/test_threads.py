from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import pytest

from kcm import errors
from kcm.apiserver.auth.attributes import ADMIN, User
from kcm.apiserver.http.threads import Threads
from kcm.testing.waiting import until_on_loop, yield_to_loop

JANE, BOB, EVE = User("jane"), User("bob"), User("eve")


@pytest.fixture
def threads() -> Iterator[Threads]:
    one_thread = Threads(1, "test")
    one_thread.start()
    yield one_thread
    one_thread.stop()


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


def test_work_is_done_in_a_thread_of_that_name(threads: Threads) -> None:
    assert run(lambda: threads.run(lambda: threading.current_thread().name, JANE)) == "test-0"


def test_an_error_is_raised_where_the_work_is_awaited(threads: Threads) -> None:
    def fail() -> None:
        raise errors.NotFound.of("pods", "web")

    with pytest.raises(errors.NotFound):
        run(lambda: threads.run(fail, JANE))
    assert run(lambda: threads.run(lambda: 7, JANE)) == 7


def test_an_error_leaves_nothing_for_the_garbage_collector(threads: Threads) -> None:
    seen: list[weakref.ref[errors.NotFound]] = []

    def fail() -> None:
        error = errors.NotFound.of("pods", "web")
        seen.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error  # this frame must not keep it either

    async def story() -> None:
        try:
            await threads.run(fail, JANE)
        except errors.NotFound:
            await threads.run(int, JANE)  # the thread has begun with something else

    gc.disable()
    try:
        run(story)
        assert seen[0]() is None
    finally:
        gc.enable()


def test_work_that_nobody_awaits_any_longer_is_not_begun(threads: Threads) -> None:
    begun: list[str] = []
    hold = threading.Event()

    async def story() -> None:
        first = asyncio.ensure_future(threads.run(hold.wait, JANE))
        second = asyncio.ensure_future(threads.run(lambda: begun.append("second"), JANE))
        await yield_to_loop()
        second.cancel()
        await yield_to_loop()
        hold.set()
        await first
        await threads.run(lambda: begun.append("third"), JANE)

    run(story)
    assert begun == ["third"]


def test_what_is_cancelled_while_it_runs_ends_without_a_word(threads: Threads) -> None:
    running, hold = threading.Event(), threading.Event()

    def work() -> None:
        running.set()
        hold.wait()

    async def story() -> str:
        task = asyncio.ensure_future(threads.run(work, JANE))
        await until_on_loop(running.is_set, "the start of the work")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        hold.set()
        return await threads.run(lambda: "next", JANE)

    assert run(story) == "next"


def test_a_loop_that_has_ended_does_not_end_the_thread(threads: Threads) -> None:
    running, hold = threading.Event(), threading.Event()

    def work() -> None:
        running.set()
        hold.wait()

    async def story() -> None:
        task = asyncio.ensure_future(threads.run(work, JANE))
        await until_on_loop(running.is_set, "the start of the work")
        task.cancel()

    run(story)
    hold.set()
    assert run(lambda: threads.run(lambda: "next", JANE)) == "next"


def test_stopping_waits_for_what_runs_and_drops_what_has_not_begun() -> None:
    threads = Threads(1, "test")
    threads.start()
    running, hold = threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        running.set()
        hold.wait()
        ended.append("first")

    async def story() -> None:
        tasks = [
            asyncio.ensure_future(threads.run(work, JANE)),
            asyncio.ensure_future(threads.run(lambda: ended.append("second"), JANE)),
        ]
        await until_on_loop(running.is_set, "the start of the work")
        stopping = threading.Thread(target=threads.stop)
        stopping.start()
        await until_on_loop(lambda: threads.stopping, "the stop")
        hold.set()
        stopping.join()
        for task in tasks:
            task.cancel()

    run(story)
    assert ended == ["first"]


def test_one_user_leaves_threads_to_others() -> None:
    """Eve's calls hang. They occupy all threads but two, which other users can use."""
    threads = Threads(4, "test")
    threads.start()
    hold = threading.Event()
    begun: list[str] = []

    def hang() -> None:
        begun.append(threading.current_thread().name)
        hold.wait()

    async def story() -> list[str]:
        eves = [asyncio.ensure_future(threads.run(hang, EVE)) for _ in range(10)]
        await until_on_loop(lambda: len(begun) == 2, "the start of two")
        bobs = asyncio.ensure_future(threads.run(hang, BOB))
        done = [await threads.run(partial(str, user.name), user) for user in (JANE, ADMIN, JANE)]
        assert not any(task.done() for task in (*eves, bobs))
        hold.set()
        await asyncio.gather(*eves, bobs)
        return done

    try:
        assert run(story) == ["jane", "kubernetes-admin", "jane"]
    finally:
        threads.stop()


def test_users_have_turns(threads: Threads) -> None:
    order: list[str] = []
    hold = threading.Event()

    async def story() -> None:
        first = asyncio.ensure_future(threads.run(hold.wait, EVE))
        await yield_to_loop()
        rest = [
            asyncio.ensure_future(threads.run(partial(order.append, user.name), user))
            for user in (EVE, EVE, EVE, JANE, BOB, JANE)
        ]
        await yield_to_loop()
        hold.set()
        await asyncio.gather(first, *rest)

    run(story)
    assert order == ["eve", "jane", "bob", "eve", "jane", "eve"]


def test_another_thread_takes_the_place_of_one_that_waits(threads: Threads) -> None:
    released = threading.Event()

    def wait() -> str:
        with threads.replaced():
            released.wait(10)
        return "waited"

    async def story() -> list[Any]:
        waiting = [asyncio.ensure_future(threads.run(wait, JANE)) for _ in range(5)]
        await yield_to_loop()
        done = [await threads.run(lambda: 7, BOB)]
        released.set()
        return done + [await task for task in waiting]

    assert run(story) == [7, *["waited"] * 5]
    assert run(lambda: threads.run(lambda: 8, JANE)) == 8
    assert run(lambda: threads.run(lambda: 9, JANE)) == 9


def test_stopping_ends_the_threads_that_took_a_place(threads: Threads) -> None:
    ended, began, released = [], threading.Event(), threading.Event()

    def wait() -> None:
        with threads.replaced():
            began.set()
            released.wait(10)
        ended.append(threading.current_thread())

    async def story() -> None:
        task = asyncio.ensure_future(threads.run(wait, JANE))
        while not began.is_set():
            await yield_to_loop()
        stopping = threading.Thread(target=threads.stop)
        stopping.start()
        released.set()
        await task
        await asyncio.to_thread(stopping.join, 10)
        assert not stopping.is_alive()

    run(story)
    assert ended
