"""Tests blocking code in an event loop: its results, its errors, and other work meanwhile."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any
from weakref import WeakSet

import pytest

from kcm.redisio import greenlets
from kcm.redisio.greenlets import TooLong


async def in_thread(call: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(call)


async def refuse_thread(call: Callable[[], Any]) -> Any:
    raise AssertionError("no thread is needed")


def run(work: Callable[[], Any]) -> Any:
    return asyncio.run(greenlets.run(work, in_thread))


@pytest.fixture(autouse=True)
def no_work_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    left: WeakSet[greenlets._Work] = WeakSet()

    class CountedWork(greenlets._Work):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            left.add(self)

    monkeypatch.setattr(greenlets, "_Work", CountedWork)
    yield
    if left:  # only then, as a collection looks at all objects of the process
        gc.collect()
    assert not left


async def give(value: object) -> object:
    await asyncio.sleep(0)
    return value


async def fail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


class CustomError(BaseException):
    pass


def test_work_gets_what_it_waits_for_and_its_result_is_returned() -> None:
    def work() -> list[object]:
        return [greenlets.wait_for(give(n)) for n in range(3)]

    assert run(work) == [0, 1, 2]


def test_what_may_take_long_is_waited_for_aside_and_nothing_else_is() -> None:
    aside: list[str] = []

    async def answer(text: str) -> str:
        return text

    async def wait(awaitable: Awaitable[str]) -> str:
        text = await awaitable
        aside.append(text)
        return text

    def work() -> tuple[str, str]:
        return greenlets.wait_for(answer("redis")), greenlets.wait_aside(answer("webhook"))

    result = asyncio.run(greenlets.run(work, refuse_thread, lambda seconds: None, wait))
    assert result == ("redis", "webhook")
    assert aside == ["webhook"]


def test_work_that_waits_for_nothing_needs_no_turn_of_the_loop() -> None:
    coroutine = greenlets.run(lambda: "done", refuse_thread)
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    assert ended.value.value == "done"


@pytest.mark.parametrize("value", [None, False, "", ValueError("returned, not raised")])
def test_any_value_can_be_a_result(value: object) -> None:
    assert run(lambda: greenlets.wait_for(give(value))) is value


@pytest.mark.parametrize(
    "kind", [ValueError, CustomError, TooLong, SystemExit, asyncio.CancelledError]
)
def test_errors_of_the_work_come_out_as_they_are(kind: type[BaseException]) -> None:
    error = kind()

    def work() -> None:
        greenlets.wait_for(give(1))
        raise error

    async def catch() -> BaseException:
        with pytest.raises(kind) as raised:
            await greenlets.run(work, in_thread)
        return raised.value

    assert asyncio.run(catch()) is error


def test_errors_before_the_first_wait_come_out_too() -> None:
    error = CustomError()

    def work() -> None:
        raise error

    with pytest.raises(CustomError) as raised:
        run(work)
    assert raised.value is error


@pytest.mark.parametrize("kind", [ValueError, CustomError, asyncio.CancelledError])
def test_the_work_gets_the_error_of_what_it_waits_for_and_may_go_on(
    kind: type[BaseException],
) -> None:
    error = kind()

    def work() -> object:
        try:
            greenlets.wait_for(fail(error))
        except kind as caught:
            return caught, greenlets.wait_for(give("more"))
        return None

    assert run(work) == (error, "more")


def test_an_error_that_the_work_does_not_catch_comes_out() -> None:
    error = CustomError()
    with pytest.raises(CustomError) as raised:
        run(lambda: greenlets.wait_for(fail(error)))
    assert raised.value is error


def test_others_run_while_work_waits() -> None:
    order: list[str] = []

    def work(name: str) -> None:
        for n in range(2):
            order.append(f"{name}{n}")
            greenlets.wait_for(asyncio.sleep(0))

    async def main() -> None:
        await asyncio.gather(*(greenlets.run(partial(work, name), refuse_thread) for name in "abc"))

    asyncio.run(main())
    assert order == ["a0", "b0", "c0", "a1", "b1", "c1"]


def test_each_work_has_its_own_stack_of_handled_errors() -> None:
    def work(name: str) -> str:
        try:
            raise ValueError(name)
        except ValueError:
            greenlets.wait_for(asyncio.sleep(0))
            try:
                raise
            except ValueError as error:
                return str(error)

    async def main() -> list[str]:
        return await asyncio.gather(
            *(greenlets.run(partial(work, name), refuse_thread) for name in "abc")
        )

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_cancelled_work_ends_where_it_waits_and_cleans_up() -> None:
    steps: list[str] = []

    def work() -> None:
        try:
            greenlets.wait_for(asyncio.get_running_loop().create_future())
        finally:
            steps.append("cleaning")
            greenlets.wait_for(asyncio.sleep(0))
            steps.append("clean")

    async def main() -> None:
        task = asyncio.create_task(greenlets.run(work, in_thread))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert steps == ["cleaning", "clean"]


def test_a_time_limit_cancels_what_the_work_waits_for() -> None:
    async def main() -> bool:
        future = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await greenlets.run(lambda: greenlets.wait_for(future), in_thread)
        return future.cancelled()

    assert asyncio.run(main())


def test_work_whose_coroutine_is_closed_is_unwound() -> None:
    steps: list[str] = []

    class Never:
        def __await__(self) -> Any:
            yield

    def work() -> None:
        try:
            greenlets.wait_for(Never())
        finally:
            steps.append("unwound")

    coroutine = greenlets.run(work, refuse_thread)
    coroutine.send(None)
    coroutine.close()
    assert steps == ["unwound"]


def test_what_blocks_is_called_in_a_thread_and_others_run_meanwhile() -> None:
    go_on = threading.Event()

    def work() -> tuple[int, bool]:
        def wait() -> tuple[int, bool]:
            return threading.get_ident(), go_on.wait(20)

        return greenlets.block(wait)

    async def heartbeat() -> None:
        await asyncio.sleep(0)
        go_on.set()  # only a loop that goes on comes here

    async def main() -> tuple[int, bool]:
        result, _ = await asyncio.gather(greenlets.run(work, in_thread), heartbeat())
        return result

    thread, was_set = asyncio.run(main())
    assert was_set
    assert thread != threading.get_ident()


def test_errors_of_what_blocks_reach_the_work() -> None:
    error = CustomError()

    def call() -> None:
        raise error

    with pytest.raises(CustomError) as raised:
        run(lambda: greenlets.block(call))
    assert raised.value is error


def test_outside_of_work_a_blocking_call_is_made_in_place() -> None:
    assert greenlets.block(threading.get_ident) == threading.get_ident()
    assert not greenlets.is_running()


def test_what_runs_in_a_thread_is_no_work_and_may_block_in_place() -> None:
    def call() -> tuple[bool, bool]:
        here = threading.get_ident()
        return greenlets.is_running(), greenlets.block(threading.get_ident) == here

    assert run(lambda: (greenlets.is_running(), greenlets.block(call))) == (True, (False, True))


class TestTooLong:
    def test_is_raised_for_more_than_the_limit(self) -> None:
        with pytest.raises(TooLong):
            run(lambda: greenlets.raise_if_long(11, 10))
        run(lambda: greenlets.raise_if_long(10, 10))

    def test_is_raised_for_many_values(self) -> None:
        few, many = b"," * greenlets.MOST_VALUES, b"," * (greenlets.MOST_VALUES + 1)
        run(lambda: greenlets.raise_if_many_values(few))
        with pytest.raises(TooLong):
            run(lambda: greenlets.raise_if_many_values(many))
        greenlets.raise_if_many_values(many)

    def test_is_raised_in_light_work_of_a_thread_that_takes_too_many_times_as_long(self) -> None:
        greenlets.run_lightly(lambda: greenlets.raise_if_long(30, 10), 3)
        with pytest.raises(TooLong):
            greenlets.run_lightly(lambda: greenlets.raise_if_long(31, 10), 3)
        greenlets.raise_if_long(31, 10)

    def test_is_not_raised_in_light_work_once_something_was_written(self) -> None:
        def work() -> str:
            greenlets.mark_written()
            greenlets.raise_if_long(11, 10)
            return "ended where it was"

        assert greenlets.run_lightly(work) == "ended where it was"

    def test_is_not_raised_once_something_was_written(self) -> None:
        def work() -> str:
            greenlets.mark_written()
            greenlets.raise_if_long(11, 10)
            return "ended where it was"

        assert run(work) == "ended where it was"

    def test_is_not_raised_outside_of_work(self) -> None:
        greenlets.mark_written()
        greenlets.raise_if_long(11, 10)

    def test_is_not_raised_once_something_was_written_in_a_thread(self) -> None:
        def work() -> str:
            greenlets.block(greenlets.mark_written)
            greenlets.raise_if_long(11, 10)
            return "ended where it was"

        assert run(work) == "ended where it was"

    def test_passes_handlers_of_failures(self) -> None:
        def work() -> None:
            try:
                greenlets.raise_if_long(11, 10)
            except Exception:  # noqa: BLE001 - as code between the store and the loop has them
                raise AssertionError from None

        with pytest.raises(TooLong):
            run(work)

    def test_concerns_one_work_only(self) -> None:
        def write() -> None:
            greenlets.mark_written()
            greenlets.wait_for(asyncio.sleep(0))

        async def main() -> None:
            first = asyncio.create_task(greenlets.run(write, in_thread))
            await asyncio.sleep(0)
            with pytest.raises(TooLong):
                await greenlets.run(lambda: greenlets.raise_if_long(11, 10), in_thread)
            await first

        asyncio.run(main())


def test_many_works_that_wait_for_each_other_end() -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[int]] = [loop.create_future() for _ in range(201)]
        futures[200].set_result(0)

        def work(n: int) -> int:
            value = greenlets.wait_for(futures[n + 1]) + 1
            futures[n].set_result(value)
            return value

        works: list[Awaitable[int]] = [
            greenlets.run(partial(work, n), refuse_thread) for n in range(200)
        ]
        return await asyncio.gather(*works)

    assert asyncio.run(main()) == list(range(200, 0, -1))


def test_each_step_of_the_work_is_measured() -> None:
    steps: list[float] = []

    def work() -> str:
        greenlets.wait_for(asyncio.sleep(0))
        return "done"

    async def measure() -> str:
        return await greenlets.run(work, asyncio.to_thread, steps.append)

    assert asyncio.run(measure()) == "done"
    assert len(steps) == 2
