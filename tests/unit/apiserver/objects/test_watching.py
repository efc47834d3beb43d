"""Tests how soon a watch sends on what its cache has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.types import Message

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.scheme import Resource
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.apiserver.http.responses import Form
from kcm.apiserver.objects import watching
from kcm.apiserver.objects.watching import HttpWatch, WatchOptions, WatchResponse
from kcm.apiserver.request_info import RequestInfo
from kcm.store import WatchEntry
from kcm.testing import builders
from kcm.testing.clock import FakeClock
from tests.unit.apiserver.flowcontrol.simulated_time import run

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


@pytest.mark.parametrize(("query", "then"), [({}, [2]), ({"labelSelector": "app!=x"}, [2, 1])])
def test_what_a_watch_shows_and_compares_is_converted(
    query: dict[str, str], then: list[int]
) -> None:
    converted: list[list[int]] = []

    async def convert(entries: Sequence[Entry], resource: Resource) -> None:
        converted.append([entry.version for entry in entries])

    pod = builders.pod("p")
    cache = WatchCache(PODS)
    cache.refill([Entry(PODS, pod.key, codec.encode(pod), 1)], 1)
    cacher: Any = SimpleNamespace(
        cache=lambda resource: cache,
        converter=SimpleNamespace(convert_entries_soon=convert),
        wait_until_filled=lambda resource: 1,
    )

    async def main() -> None:
        options = WatchOptions.of(RequestInfo(PODS), {"resourceVersion": "0", **query}, Form())
        watch = HttpWatch(cast(Cacher, cacher), options, asyncio.get_running_loop())
        watch.subscribe()
        chunks = watch.chunks()
        await anext(chunks)
        cache.apply([WatchEntry(PODS, 2, "MODIFIED", pod.key, codec.encode(pod))], 2)
        await anext(chunks)
        watch.close()

    asyncio.run(main())
    assert converted == [[1], then]


@pytest.mark.parametrize(
    ("form", "content_type"),
    [
        (Form(), b"application/json"),
        (Form("Table"), b"application/json;as=Table;v=v1;g=meta.k8s.io"),
    ],
)
def test_a_stream_says_what_form_its_objects_have(form: Form, content_type: bytes) -> None:
    sent: list[Message] = []
    ended: list[HttpWatch] = []

    async def chunks() -> AsyncIterator[list[bytes]]:
        yield [b"line\n"]

    async def receive() -> Message:
        await asyncio.Event().wait()  # the client stays
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    watch = cast(HttpWatch, SimpleNamespace(chunks=chunks, close=lambda: None))
    asyncio.run(WatchResponse(watch, form, ended.append)({}, receive, send))
    assert (b"content-type", content_type) in sent[0]["headers"]
    assert [message["body"] for message in sent[1:]] == [b"line\n", b""]
    assert ended == [watch]


@pytest.mark.parametrize(
    ("timeout", "at"), [(130, [60.0, 120.0, 128.0]), (61, [59.0]), (2, []), (90, [60.0, 88.0])]
)
def test_bookmarks_come_each_minute_and_shortly_before_the_end(
    timeout: int, at: list[float]
) -> None:
    cache = WatchCache(PODS)
    cache.refill([], 7)
    cacher: Any = SimpleNamespace(
        cache=lambda resource: cache, converter=None, wait_for_version=lambda *_: None
    )

    async def main() -> list[float]:
        loop, times = asyncio.get_running_loop(), list[float]()
        query = {"timeoutSeconds": str(timeout), "allowWatchBookmarks": "true"}
        watch = HttpWatch(
            cast(Cacher, cacher), WatchOptions.of(RequestInfo(PODS), query, Form()), loop
        )
        watch.subscribe()
        async for chunk in watch.chunks():
            assert b'"BOOKMARK"' in b"".join(chunk)
            times.append(loop.time())
        watch.close()
        return times

    assert run(main()) == at
