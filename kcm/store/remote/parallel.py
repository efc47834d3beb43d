"""Sends several requests at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from typing import TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


def send_all(
    send: Callable[[Request], Result], requests: Sequence[Request], pool: Executor, most: int
) -> list[Result]:
    """Sends the requests from up to `most` threads, of which the caller's is one.

    Each thread takes the next request when it has sent one: to hand over every request by itself
    costs a third of what sending it does. After a failure, which is raised, none is begun any more,
    and none is under way.
    """
    results: dict[int, Result] = {}
    waiting, broken = enumerate(requests), threading.Event()

    def work() -> None:
        for number, request in waiting:
            if broken.is_set():
                return
            try:
                results[number] = send(request)
            except BaseException:
                broken.set()
                raise

    others = [pool.submit(work) for _ in range(min(most, len(requests)) - 1)]
    try:
        work()
    finally:
        wait(others)
    for other in others:
        other.result()
    return [results[number] for number in range(len(requests))]
