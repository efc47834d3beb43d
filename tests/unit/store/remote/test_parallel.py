"""How several requests are sent at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kcm import errors
from kcm.store.remote.parallel import send_all


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_results_have_the_order_of_the_requests(pool: ThreadPoolExecutor) -> None:
    """The first request is answered last."""
    others = threading.Semaphore(0)

    def send(number: int) -> int:
        if number == 0:
            for _ in range(9):
                others.acquire()
        else:
            others.release()
        return number * 2

    assert send_all(send, range(10), pool, 8) == [number * 2 for number in range(10)]


def test_one_request_is_sent_by_the_thread_that_asks(pool: ThreadPoolExecutor) -> None:
    assert send_all(lambda _: threading.current_thread(), ["a"], pool, 8) == [
        threading.current_thread()
    ]


def test_nothing_is_sent_for_no_requests(pool: ThreadPoolExecutor) -> None:
    assert send_all(str, [], pool, 8) == []


def test_no_more_requests_are_sent_at_a_time_than_are_allowed(pool: ThreadPoolExecutor) -> None:
    """Each request waits for another, so that as many as may are under way."""
    lock, now, seen, pairs = threading.Lock(), 0, 0, threading.Barrier(2)

    def send(_: int) -> None:
        nonlocal now, seen
        with lock:
            now += 1
            seen = max(seen, now)
        pairs.wait(30)
        with lock:
            now -= 1

    send_all(send, range(20), pool, 2)
    assert seen == 2


def test_after_a_failure_no_request_is_begun_and_none_is_under_way(
    pool: ThreadPoolExecutor,
) -> None:
    """There are too many requests to send all of them."""
    both, under_way = threading.Barrier(2), set[int]()

    def send(number: int) -> None:
        under_way.add(number)
        if number < 2:
            both.wait(30)
        if number == 0:
            under_way.discard(number)
            raise errors.StoreUnavailable("gone")
        under_way.discard(number)

    with pytest.raises(errors.StoreUnavailable, match="gone"):
        send_all(send, range(1 << 40), pool, 2)
    assert not under_way
