"""Watches over REST, with the interface of one blocking read for informers.

Each kind's watch runs in a thread and fills a buffer; `read_changes` empties the buffers.
Guarantees: a kind's changes are returned once and in order from the position on, or the kind is
reported as gone: also if the server's data went back before the position, as those of an etcd that
was restored. A watch that fails is opened again from its position after PAUSE seconds; until then
its kind has no changes.

Objects come without managed fields, as in upstream's controller manager
(cmd/kube-controller-manager/app/controllermanager.go, Kubernetes 1.36): no controller reads them,
they are a third of a small pod, and an update without them leaves them as they are on the server.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import structlog
from pydantic_core import from_json, to_json

from kcm import errors
from kcm.api.scheme import Resource
from kcm.clock import Clock
from kcm.loops import start_thread
from kcm.store.remote.rest import JSON, METADATA, ResponseLines, RestClient, error_of, path_of
from kcm.store.watch import Changes, WatchEntry

log = structlog.get_logger("kcm.remote")

# The server ends a watch after a random time between these seconds, as client-go asks for; it is
# opened again at once.
WATCH_SECONDS = (300, 600)
CLOSE_TIMEOUT = 2.0  # seconds that `close` waits for the thread of a watch
PAUSE = 1.0  # seconds between attempts to open a watch that failed


class RemoteWatches:
    """The watches of one server. A kind's watch is started when the kind is first read."""

    def __init__(
        self, client: RestClient, clock: Clock, field_selectors: Mapping[str, str]
    ) -> None:
        """`field_selectors` restrict the watches of kinds, by the resource's name."""
        self._selectors = field_selectors
        self._client = client
        self._clock = clock
        self._changed = threading.Condition()
        self._streams: dict[Resource, _RemoteWatch] = {}

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Returns the changes after `positions`, after a wait of up to `block_ms` milliseconds."""
        with self._changed:
            streams = [self._stream(resource, rv) for resource, rv in positions.items()]
            self._changed.wait_for(lambda: any(s.has_news for s in streams), block_ms / 1000)
            return _collect_changes(streams)

    def _stream(self, resource: Resource, position: int) -> _RemoteWatch:
        watch = self._streams.get(resource)
        if watch is None or watch.position != position or watch.told:
            if watch is not None:
                watch.end()
            watch = _RemoteWatch(
                resource,
                position,
                self._client,
                self._clock,
                self._changed,
                field_selector=self._selectors.get(resource.name, ""),
            )
            self._streams[resource] = watch
            watch.thread = start_thread(f"kcm-watch-{resource.name}", watch.run)
        return watch

    def close(self) -> None:
        """Stops all watches and waits for their threads."""
        with self._changed:
            streams = list(self._streams.values())
            for stream in streams:
                stream.end()
        for stream in streams:
            if stream.thread is not None:
                stream.thread.join(CLOSE_TIMEOUT)


def _collect_changes(streams: list[_RemoteWatch]) -> Changes:
    entries: list[WatchEntry] = []
    for stream in streams:
        entries += stream.take()
    gone = frozenset(stream.resource for stream in streams if stream.tell_gone())
    return Changes(entries, gone, {stream.resource: stream.position for stream in streams})


class _RemoteWatch:
    """The watch of one kind. All fields are guarded by `changed`."""

    def __init__(
        self,
        resource: Resource,
        position: int,
        client: RestClient,
        clock: Clock,
        changed: threading.Condition,
        *,
        field_selector: str = "",
    ) -> None:
        self._field_selector = field_selector
        self.resource = resource
        # A watch of metadata shows another kind and apiVersion.
        self._head = {"kind": resource.kind, "apiVersion": resource.api_version}
        self.position = position  # up to which changes were returned to the reader
        self.gone = False
        self.told = False  # whether the reader was told that it is gone
        self.stop = threading.Event()
        self._read = position  # up to which the server has sent changes
        self._pending: list[WatchEntry] = []
        self._client = client
        self._clock = clock
        self._changed = changed
        self._lines: ResponseLines | None = None  # while a watch is open
        self.thread: threading.Thread | None = None

    def end(self) -> None:
        """Stops the watch. The caller holds `changed`."""
        self.stop.set()
        if self._lines is not None:
            self._lines.cut()

    @property
    def has_news(self) -> bool:
        return self.gone or bool(self._pending)

    def take(self) -> list[WatchEntry]:
        """Returns the changes that have not been taken yet."""
        entries, self._pending = self._pending, []
        self.position = self._read
        return entries

    def tell_gone(self) -> bool:
        """Reports to the reader whether the position is gone."""
        self.told = self.gone
        return self.gone

    def run(self) -> None:
        """Watches until `stop` is set, or until the server no longer has the position."""
        was_away = False
        while not (self.stop.is_set() or self.gone):
            try:
                if was_away:
                    self._require_position()
                self._watch()
                was_away = False
            except (errors.Gone, errors.NotFound):
                # The list of a kind that is not served fails, which waits for longer.
                with self._changed:
                    self.gone = True
                    self._changed.notify_all()
            except errors.KcmError as error:
                was_away = True
                if not self.stop.is_set():
                    log.warning(
                        "A watch is opened again", kind=self.resource.name, error=str(error)
                    )
                    self._clock.wait(self.stop, PAUSE)

    def _require_position(self) -> None:
        """Raises Gone if the server's data are older than the position.

        A watch from a later position waits until the data have come that far, without an error.
        """
        at = {"limit": "1", "resourceVersion": str(self._read)}
        self._client.request("GET", path_of(self.resource), params=at)

    def _watch(self) -> None:
        longest = random.randint(*WATCH_SECONDS)
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self._read),
            "timeoutSeconds": str(longest),
        }
        if self._field_selector:
            params["fieldSelector"] = self._field_selector
        accept = METADATA if self.resource.model.metadata_only else JSON
        with self._client.lines(path_of(self.resource), params, longest, accept) as lines:
            try:
                self._follow(lines)
            finally:
                with self._changed:
                    # Before it is closed, so that `end` never cuts another connection.
                    self._lines = None

    def _follow(self, lines: ResponseLines) -> None:
        with self._changed:
            self._lines = lines
        for event in _events(iter(lines)):
            if self.stop.is_set():
                return
            self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        obj = event["object"]
        if event["type"] == "ERROR":
            error = error_of(int(obj.get("code") or 0), to_json(obj))
            if isinstance(error, errors.Gone):
                raise error
            raise errors.StoreUnavailable(f"the watch failed: {error}")
        meta = obj["metadata"]
        version = int(meta["resourceVersion"])
        if version < self._read:
            raise errors.Gone(f"the server went back from {self._read} to {version}")
        with self._changed:
            self._read = version
            if event["type"] != "BOOKMARK":
                name, namespace = meta["name"], meta.get("namespace", "")
                key = f"{namespace}/{name}" if namespace else name
                meta.pop("managedFields", None)
                # In the order in which unknown fields are kept when it is decoded.
                raw = to_json({"kind": self.resource.kind, **obj, **self._head})
                self._pending.append(WatchEntry(self.resource, version, event["type"], key, raw))
                self._changed.notify_all()


def _events(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            event = from_json(line)
            if event["type"] == "ERROR" or event["object"]["metadata"] is not None:
                yield event
        except (ValueError, KeyError, TypeError) as error:
            raise errors.StoreUnavailable(
                f"the watch sent a line that is not a watch event: {error}"
            ) from error
