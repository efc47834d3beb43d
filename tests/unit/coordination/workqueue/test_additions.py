from __future__ import annotations

from typing import Any, cast

from kcm.coordination.workqueue import Addition, add_keys, dispatch
from kcm.redisio import Fence, Keys, RedisIO


class Recorder:
    """Replaces Redis: records calls, and answers OK."""

    keys = Keys()

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def call(self, *args: Any) -> list[str]:
        self.calls.append(args)
        return ["OK", "1"]


def recorder() -> tuple[Recorder, RedisIO]:
    new_recorder = Recorder()
    return new_recorder, cast("RedisIO", new_recorder)


def test_delays_travel_as_milliseconds_and_no_delay_as_zero() -> None:
    assert Addition("q", ("a", "b")).args() == ["q", 0, 2, "a", "b"]
    assert Addition("q", ("a",), 1.5).args() == ["q", 1500.0, 1, "a"]
    assert Addition("q", ("a",), -1).args() == ["q", 0, 1, "a"]
    assert Addition("q", ("a",), rate_limited=True).args() == ["q", "limited", 1, "a"]


def test_nothing_to_mark_makes_no_call() -> None:
    new_recorder, io = recorder()
    assert add_keys(io, []) == 0
    assert new_recorder.calls == []


def test_marks_are_split_at_a_thousand_keys_a_call() -> None:
    new_recorder, io = recorder()
    many = tuple(f"k{i}" for i in range(1500))
    add_keys(io, [Addition("p", ("a",)), Addition("q", many), Addition("r", ("b",))])
    sizes = [[part for part in call if isinstance(part, int)] for call in new_recorder.calls]
    assert sizes == [[0, 1], [0, 1000], [0, 500, 0, 1]]


def test_the_position_goes_with_the_last_call_of_a_dispatch() -> None:
    new_recorder, io = recorder()
    fence = Fence("f", "token", "3")
    dispatch(io, fence, {"pods": 7}, [Addition("q", tuple(f"k{i}" for i in range(1001)))])
    heads = [call[:6] for call in new_recorder.calls]
    position = io.keys.dispatch_position()
    assert heads[0] == ("queue_dispatch", "f", "token", "3", position, 0)
    assert heads[1] == ("queue_dispatch", "f", "token", "3", position, 1)
    assert new_recorder.calls[1][6:8] == ("pods", 7)


def test_a_dispatch_without_marks_still_stores_its_position() -> None:
    new_recorder, io = recorder()
    dispatch(io, Fence("f", "token", "3"), {"pods": 7}, [])
    assert new_recorder.calls[0][5:] == (1, "pods", 7, 0)
