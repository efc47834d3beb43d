"""Tests how soon a watch sends on what its cache has."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.apiserver.http.responses import Form
from kcm.apiserver.objects import watching
from kcm.apiserver.objects.watching import HttpWatch, WatchOptions
from kcm.apiserver.request_info import RequestInfo
from kcm.store import WatchEntry
from kcm.testing import builders
from kcm.testing.clock import FakeClock

PODS = Pod.resource


def added(number: int) -> WatchEntry:
    pod = builders.pod(f"p-{number}").with_metadata(resource_version=str(number))
    return WatchEntry(PODS, number, "ADDED", pod.key, codec.encode(pod))


def test_single_changes_are_sent_at_once_and_a_stream_of_them_in_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, sleep, pauses = FakeClock(), asyncio.sleep, list[float]()

    async def note(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(watching, "RealClock", lambda: clock)
    monkeypatch.setattr(asyncio, "sleep", note)
    cache = WatchCache(PODS)
    cache.refill([], 0)
    cacher: Any = SimpleNamespace(
        cache=lambda resource: cache, converter=None, wait_until_filled=lambda resource: 0
    )

    async def main() -> list[int]:
        options = WatchOptions.of(RequestInfo(PODS), {"resourceVersion": "0"}, Form())
        watch = HttpWatch(cast(Cacher, cacher), options, asyncio.get_running_loop())
        watch.subscribe()
        chunks, paused = watch.chunks(), list[int]()
        for number in range(1, 13):
            waiting = asyncio.ensure_future(anext(chunks))
            for _ in range(10):  # steps of the loop, until the watch waits
                await sleep(0)
            cache.apply([added(number)], number)
            assert f'"p-{number}"'.encode() in b"".join(await waiting)
            paused.append(len(pauses))
        watch.close()
        return paused

    paused = asyncio.run(main())
    assert paused[:7] == [0] * 7
    assert paused[-1] == 5
    assert set(pauses) == {watching.MERGE}
