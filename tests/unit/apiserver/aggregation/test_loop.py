"""How often APIs are checked."""

from __future__ import annotations

from kcm.apiserver.aggregation.index import RemoteApi
from kcm.apiserver.aggregation.loop import FIRST_RETRY, LAST_RETRY, RESYNC, ApiTask


async def nothing(_: RemoteApi) -> bool:
    return True


def task() -> ApiTask:
    return ApiTask(nothing, RESYNC, FIRST_RETRY, LAST_RETRY)


def test_a_check_that_failed_is_repeated_after_twice_the_time() -> None:
    checks, pauses = task(), []
    for _ in range(16):
        checks.finish("a", 100.0, succeeded=False)
        pauses.append((checks.due.next_at() or 0) - 100.0)
    assert [round(pause, 3) for pause in pauses[:4]] == [0.005, 0.01, 0.02, 0.04]
    assert pauses[-1] == 30.0
    checks.finish("a", 100.0, succeeded=True)
    assert checks.due.next_at() == 130.0
    checks.finish("a", 100.0, succeeded=False)
    assert round((checks.due.next_at() or 0) - 100.0, 3) == 0.005


def test_what_changes_during_a_check_is_checked_again() -> None:
    checks = task()
    checks.running.add("a")
    checks.hurry("a")
    assert checks.due.next_at() is None
    checks.finish("a", 100.0, succeeded=True)
    assert checks.due.next_at() == 0.0
    checks.forget("a")
    assert checks.due.next_at() is None
