"""Watches over HTTP: streams of JSON lines.

An object that begins to match the selectors is sent as ADDED, one that stops matching as DELETED.
An expired resourceVersion gives an ERROR event with code 410. A client that does not read is
disconnected. A stream ends at its timeout, or when the server or the client closes it.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.entries import CacheEvent, Entry, event_line, event_parts
from kcm.apiserver.cache.watch_cache import CacheWatcher
from kcm.apiserver.http.responses import JSON, Form, json_bytes, read_number
from kcm.apiserver.http.sending import cut
from kcm.apiserver.objects import status, tables
from kcm.apiserver.objects.selection import Freshness, ObjectSelection, check_options
from kcm.apiserver.request import truth
from kcm.apiserver.request_info import RequestInfo
from kcm.clock import RealClock
from kcm.loops.pace import ReadPace
from kcm.redisio.pipelining import LONG_REPLY

BOOKMARK_EVERY = 60.0  # seconds, as upstream's defaultBookmarkFrequency
LAST_BOOKMARK = 2.0  # seconds before the timeout, as upstream's nextBookmarkTime
MIN_TIMEOUT = 1800.0  # seconds; without timeoutSeconds, once to twice this, as upstream
# The first chunks in a row are sent at once, further ones this many seconds apart.
MERGE = 0.005
_SENT_AT_ONCE = 8
_MOST_AT_ONCE = 200  # events in one chunk
_LARGEST = 256 * 1024  # bytes in one chunk, unless one event has more
_INITIAL = "sendInitialEvents"
_INITIAL_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True)
class WatchOptions:
    """The parameters of one watch."""

    selection: ObjectSelection
    form: Form
    fresh: Freshness
    initial: bool | None  # the parameter sendInitialEvents, None if it is absent
    bookmarks: bool
    timeout: float
    include: str

    @classmethod
    def of(cls, info: RequestInfo, query: Mapping[str, str], form: Form) -> WatchOptions:
        """Returns the options of a watch request. Raises BadRequest and Invalid."""
        check_options(query, watch=True)
        seconds = read_number(query, "timeoutSeconds")
        tables.check_include(query.get("includeObject", ""))
        return cls(
            selection=ObjectSelection.of(info, query),
            form=form,
            fresh=Freshness.of(query),
            initial=truth(query, _INITIAL) if _INITIAL in query else None,
            bookmarks=truth(query, "allowWatchBookmarks"),
            timeout=seconds or MIN_TIMEOUT * (1 + random.random()),
            include=query.get("includeObject", ""),
        )

    @property
    def with_present(self) -> bool:
        """Reports whether the watch starts with the present objects.

        A watch without a version does, unless it sends sendInitialEvents=false.
        """
        return not self.fresh.version if self.initial is None else self.initial

    @property
    def initial_end(self) -> bool:
        """Reports whether a bookmark follows the present objects."""
        return bool(self.initial) and self.bookmarks


def _split(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Yields the entries in parts, each for one chunk.

    A client that does not read keeps one chunk in memory, so chunks have few bytes; and few
    entries, so that the event loop does other work between them.
    """
    part: list[Entry] = []
    size = 0
    for entry in entries:
        part.append(entry)
        size += entry.size
        if len(part) >= _MOST_AT_ONCE or size >= _LARGEST:
            yield part
            part, size = [], 0
    if part:
        yield part


class HttpWatch:
    """One watch. Call `subscribe` in a thread, then iterate `chunks` in the event loop."""

    def __init__(
        self, cacher: Cacher, options: WatchOptions, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._cacher = cacher
        self._cache = cacher.cache(options.selection.resource)
        self._options = options
        self._loop = loop
        self._awake = asyncio.Event()
        self._stopped = False
        self._headers = True
        self._present: list[Entry] = []
        self._watcher: CacheWatcher | None = None
        self._start = 0
        self._after = 0  # the client has seen everything up to this version
        self._pace = ReadPace(RealClock(), shortest=0.0, interval=MERGE, burst=_SENT_AT_ONCE)

    def subscribe(self) -> None:
        """Subscribes to the watch cache, once it is as fresh as the request asks.

        Raises Gone, StoreUnavailable and TooLargeResourceVersion.
        """
        options, version = self._options, self._options.fresh.version
        if version is None or options.initial_end:
            self._cacher.wait_for_version(options.selection.resource, version or 0)
        elif version > self._cacher.wait_until_filled(options.selection.resource):
            # Of a write that is on its way here, or of an epoch that was lost with its server.
            self._cacher.wait_for_version(options.selection.resource, version)
        # Without a version, and without the present objects, the watch starts now.
        after = None if options.with_present else version or self._cache.position
        self._present, self._watcher = self._cache.subscribe(
            after,
            options.selection.namespace,
            self._wake,
            selects=not options.selection.everything,
        )
        self._after = after or 0
        self._start = self._watcher.position

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._awake.set)
        except RuntimeError:  # the loop is closed, and with it every stream
            return

    def stop(self) -> None:
        """Stops the stream. It must be called in the event loop."""
        self._stopped = True
        self._awake.set()

    def expire(self) -> None:
        """Ends the stream with an ERROR event of code 410. It must be called in the event loop."""
        if self._watcher is not None:
            self._cache.unsubscribe(self._watcher)
            self._watcher.gone = True
            self._watcher.pending.clear()
            self._awake.set()

    def close(self) -> None:
        """Unsubscribes from the watch cache."""
        if self._watcher is not None:
            self._cache.unsubscribe(self._watcher)
            self._watcher = None  # each holds the other

    async def chunks(self) -> AsyncIterator[Sequence[bytes]]:
        """Yields the watch events in chunks, until it times out or is stopped.

        A chunk is the parts of whole lines. Large parts belong to the cache, and are not copied.

        The last line is an ERROR event if the resourceVersion of the watch has expired.
        """
        assert self._watcher is not None
        end = self._loop.time() + self._options.timeout
        async for piece in self._initial_pieces():
            if self._stopped:
                return
            if piece:
                yield piece
            await asyncio.sleep(0)
        mark = self._next_mark(end)
        while not self._stopped:
            events = self._take(self._watcher)
            await self._convert_events(events)
            piece = await self._render(
                [event.entry for event in events],
                partial(self._event_lines, events),
            )
            if piece:
                yield piece
            now = self._loop.time()
            if now >= end:
                return
            if piece or self._watcher.pending:
                await asyncio.sleep(0)
                continue
            if self._watcher.ended:
                break
            if now >= mark:
                mark = self._next_mark(end)
                position = self._watcher.position  # read before `pending`, see WatchCache.apply
                if self._options.bookmarks and not self._watcher.pending:
                    yield [self._bookmark(position, {})]
            await self._sleep(min(end, mark) - now)
        if self._watcher.gone:
            yield [error_line(errors.Gone("too old resource version: list again"))]

    def _next_mark(self, end: float) -> float:
        """Returns the time of the next bookmark: in a minute, or shortly before the end."""
        now = self._loop.time()
        last = end - LAST_BOOKMARK
        return min(now + BOOKMARK_EVERY, last if last > now else math.inf)

    async def _sleep(self, seconds: float) -> None:
        assert self._watcher is not None
        self._awake.clear()
        if self._watcher.pending or self._watcher.ended or self._stopped:
            return
        try:
            await asyncio.wait_for(self._awake.wait(), max(seconds, 0.001))
        except TimeoutError:
            return
        if not self._stopped and (pause := self._pace.count_read()):
            await asyncio.sleep(pause)

    async def _initial_pieces(self) -> AsyncIterator[Sequence[bytes]]:
        for part in _split(self._present):
            await self._convert(part)
            yield await self._render(part, partial(self._initial_lines, part))
        self._present = []
        if self._options.initial_end:
            yield [self._bookmark(self._start, _INITIAL_END)]

    def _take(self, watcher: CacheWatcher) -> list[CacheEvent]:
        """Returns the next events of the namespace, as many as a chunk has."""
        events: list[CacheEvent] = []
        size = 0
        for _ in range(_MOST_AT_ONCE):
            if not watcher.pending or size >= _LARGEST:
                break
            event = watcher.pending.popleft()
            # The cache may be behind the version that the client has already seen.
            seen = event.entry.version <= self._after
            if not seen and self._options.selection.covers(event.entry.key):
                events.append(event)
                size += event.entry.size
        return events

    async def _convert_events(self, events: Sequence[CacheEvent]) -> None:
        """Converts the objects of the events by the webhook of their kind, if there is one."""
        entries = [event.entry for event in events]
        if not self._options.selection.everything:
            entries += [event.before for event in events if event.before is not None]
        await self._convert(entries)

    async def _convert(self, entries: Sequence[Entry]) -> None:
        if entries and self._cacher.converter is not None:
            resource = self._options.selection.resource
            await self._cacher.converter.convert_entries_soon(entries, resource)

    async def _render(
        self, entries: Sequence[Entry], make_lines: Callable[[], list[bytes]]
    ) -> list[bytes]:
        """Returns the lines of entries. They are made in a thread if much has to be decoded."""
        options = self._options
        is_raw = options.selection.everything and not options.form.as_
        size = 0 if is_raw else sum(entry.size for entry in entries)
        return make_lines() if size <= LONG_REPLY else await asyncio.to_thread(make_lines)

    def _event_lines(self, events: Sequence[CacheEvent]) -> list[bytes]:
        return [line for event in events if (line := self._event(event))]

    def _initial_lines(self, entries: Sequence[Entry]) -> list[bytes]:
        selection = self._options.selection
        shown = (entry.convert_to(selection.resource) for entry in entries)
        matching = (entry for entry in shown if selection.matches(entry))
        return [piece for entry in matching for piece in self._line_parts("ADDED", entry)]

    def _event(self, event: CacheEvent) -> bytes:
        selection = self._options.selection
        event = event.convert_to(selection.resource, with_before=not selection.everything)
        if selection.everything:
            kind = event.type
            return event.line if not self._options.form.as_ else self._line(kind, event.entry)
        now = event.type != "DELETED" and selection.matches(event.entry)
        before = event.before is not None and selection.matches(event.before)
        if now:
            return self._line("MODIFIED" if before else "ADDED", event.entry)
        return self._line("DELETED", event.last_match) if before else b""

    def _line(self, kind: str, entry: Entry) -> bytes:
        return b"".join(self._line_parts(kind, entry))

    def _line_parts(self, kind: str, entry: Entry) -> Sequence[bytes]:
        if self._options.form.as_:
            return [self._shown_line(kind, entry)]
        return event_parts(kind, entry)

    def _shown_line(self, kind: str, entry: Entry) -> bytes:
        form = self._options.form
        if form.as_ != "Table":
            return event_line(kind, json_bytes(tables.partial_metadata(entry.obj, form)))
        meta = {"resourceVersion": entry.obj.metadata.resource_version or ""}
        resource = self._options.selection.resource
        table = tables.table(
            resource, [entry], form, self._options.include, meta, headers=self._headers
        )
        self._headers = False
        return event_line(kind, json_bytes(table))

    def _bookmark(self, position: int, annotations: Mapping[str, str]) -> bytes:
        resource = self._options.selection.resource
        meta: dict[str, Any] = {"resourceVersion": str(position)}
        if annotations:
            meta["annotations"] = annotations
        body: dict[str, Any] = {"kind": resource.kind, "apiVersion": resource.api_version}
        if self._options.form.as_ == "Table":
            body = {
                "kind": "Table",
                "apiVersion": self._options.form.api_version,
                "columnDefinitions": None,
                "rows": [{"cells": [], "object": body | {"metadata": meta}}],
            }
        elif self._options.form.as_:
            form = self._options.form
            body = {"kind": "PartialObjectMetadata", "apiVersion": form.api_version}
        return event_line("BOOKMARK", json_bytes(body | {"metadata": meta}))


def error_line(error: Exception) -> bytes:
    """Returns the line of an ERROR event with the Status of an exception."""
    return event_line("ERROR", json_bytes(status.failure(error)))


class WatchResponse:
    """The ASGI response that sends a watch's stream. `done` is called when it ends."""

    def __init__(self, watch: HttpWatch, form: Form, done: Callable[[HttpWatch], None]) -> None:
        self._watch = watch
        self._form = form
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(self._wait_for_disconnect(receive))
        try:
            await send(start_message(self._content_type()))
            async for chunk in self._watch.chunks():
                for piece in cut(chunk):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except Exception as error:  # noqa: BLE001 - the head is sent, so the stream reports it
            body = error_line(error)
            await send({"type": "http.response.body", "body": body})
        finally:
            gone.cancel()
            self._watch.close()
            self._done(self._watch)

    async def _wait_for_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._watch.stop()

    def _content_type(self) -> str:
        if not self._form.as_:
            return JSON
        return f"{JSON};as={self._form.as_};v={self._form.version};g=meta.k8s.io"


def start_message(content_type: str) -> dict[str, Any]:
    """Returns the ASGI message that starts a stream."""
    headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-cache, private")]
    return {"type": "http.response.start", "status": 200, "headers": headers}
