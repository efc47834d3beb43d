"""The loop that checks the servers of other APIs and fetches their documents.

It is a thread with an event loop of its own, so that nothing a server sends, however slowly, holds
up requests. At most `WORKERS` checks and as many fetches run at a time, however many APIServices
there are. What has changed comes before what is repeated.

Source: staging/src/k8s.io/kube-aggregator/pkg/controllers/status/remote,
pkg/apiserver/handler_discovery.go and pkg/controllers/openapi/controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

import structlog

from kcm import errors
from kcm.api.apiregistration_v1 import APIService, find_condition
from kcm.api.core_v1 import Endpoints, Service
from kcm.api.discovery_v1 import EndpointSlice
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.aggregation.availability import Outcome, Prober, check_service
from kcm.apiserver.aggregation.index import ApiIndex, Caches, RemoteApi
from kcm.apiserver.aggregation.remote_documents import FetchFailed, RemoteDocuments
from kcm.apiserver.aggregation.status_writer import StatusWriter
from kcm.apiserver.aggregation.timetable import Timetable
from kcm.apiserver.aggregation.wakes import CacheWakes
from kcm.apiserver.egress.services import service_of
from kcm.clock import Clock, RealClock
from kcm.coordination.lease import RENEW_EVERY
from kcm.loops import start_thread

log = structlog.get_logger("kcm.apiserver")

WORKERS = 5
RESYNC = 30.0  # seconds between two checks
FIRST_RETRY, LAST_RETRY = 0.005, 30.0  # seconds after a failed check, doubled each time
DISCOVERY_EVERY = 60.0  # seconds
OPENAPI_EVERY, OPENAPI_LAST_RETRY = 60.0, 3600.0  # seconds
DISCOVERY_FIRST_RETRY = 5.0  # seconds
_LONGEST_WAIT = 1.0  # seconds
_STOP_TIMEOUT = 5.0  # seconds
_MODELS = (APIService, Service, Endpoints, EndpointSlice)

Work = Callable[[RemoteApi], Awaitable[bool]]


@dataclass
class ApiTask:
    """One kind of work on APIs: when it is due again after success and failure, in seconds."""

    work: Work
    every: float
    first_retry: float
    last_retry: float
    due: Timetable = field(default_factory=Timetable)
    failures: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)  # became due while it ran

    def hurry(self, name: str) -> None:
        """Makes an API due now, or when the work on it that runs has ended."""
        if name in self.running:
            self.again.add(name)
        else:
            self.due.set(name, 0.0)

    def forget(self, name: str) -> None:
        """Drops an API that is gone."""
        self.due.remove(name)
        self.failures.pop(name, None)
        self.again.discard(name)

    def finish(self, name: str, now: float, *, succeeded: bool) -> None:
        """Notes the end of some work, and when it is due again."""
        self.running.discard(name)
        failed = self.failures[name] = 0 if succeeded else self.failures.get(name, 0) + 1
        pause = self.every
        if failed:
            pause = min(self.first_retry * 2 ** min(failed - 1, 30), self.last_retry)
        self.due.set(name, 0.0 if name in self.again else now + pause)
        self.again.discard(name)


class AggregationLoop:
    """Runs the checks and fetches. `start` runs it in a thread."""

    def __init__(
        self,
        caches: Caches,
        index: ApiIndex,
        prober: Prober,
        *,
        documents: RemoteDocuments,
        writer: StatusWriter,
        count_unavailable: Callable[[str, str], None],
        clock: Clock | None = None,
    ) -> None:
        """`count_unavailable` is called with name and reason when an API becomes unavailable."""
        self._caches = caches
        self._index = index
        self._prober = prober
        self._documents = documents
        self._writer = writer
        self._count_unavailable = count_unavailable
        self._clock = clock or RealClock()
        self._checks = ApiTask(self._check, RESYNC, FIRST_RETRY, LAST_RETRY)
        self._discovery = ApiTask(
            self._fetch_discovery, DISCOVERY_EVERY, DISCOVERY_FIRST_RETRY, DISCOVERY_EVERY
        )
        self._openapi = ApiTask(
            self._fetch_openapi, OPENAPI_EVERY, OPENAPI_EVERY, OPENAPI_LAST_RETRY
        )
        self._apis: dict[str, RemoteApi] = {}
        self._by_service: dict[str, list[str]] = {}
        self._renewed = float("-inf")
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = threading.Event()
        self._wake: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakes = CacheWakes(caches, _MODELS, self.wake)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._thread = start_thread("kcm-aggregation", self._run)

    def stop(self) -> None:
        """Stops the thread."""
        self._stop.set()
        self.wake()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT)

    def wake(self) -> None:
        """Makes the loop look at what has changed. Any thread may call it."""
        loop, event = self._loop, self._wake
        if loop is not None and event is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception:  # the server works without aggregation
            log.exception("The loop of aggregation has ended")

    async def _serve(self) -> None:
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        try:
            while not self._stop.is_set():
                self._wake.clear()
                try:
                    pause = await self.turn()
                except Exception:  # if the loop ended, no API would become available
                    log.exception("A turn of aggregation failed")
                    pause = _LONGEST_WAIT
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), pause)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._wakes.stop()
            await asyncio.to_thread(self._writer.release)

    # --- what is due

    async def turn(self) -> float:
        """Notes what has changed, and starts what is due. Returns the seconds until more is due."""
        self._note_changes()
        if not self._apis:
            return _LONGEST_WAIT
        now = self._clock.monotonic()
        if now - self._renewed >= RENEW_EVERY:
            self._renewed = now
            await asyncio.to_thread(self._writer.acquire)
        tasks = [self._discovery, self._openapi]
        if self._writer.held:
            tasks.append(self._checks)
        moments = [self._renewed + RENEW_EVERY]
        for task in tasks:
            self._start_due(task, now)
            if len(task.running) < WORKERS and (at := task.due.next_at()) is not None:
                moments.append(at)
        return max(0.0, min(*moments, now + _LONGEST_WAIT) - now)

    def _note_changes(self) -> None:
        changed = self._wakes.take()
        if changed[APIService] is None or changed[APIService]:
            self._note_apis()
        for model in (Service, Endpoints, EndpointSlice):
            self._note_services(model, changed[model])

    def _note_apis(self) -> None:
        present = {api.name: api for api in self._index.all().values()}
        for name in set(self._apis) - set(present):
            for task in (self._checks, self._discovery, self._openapi):
                task.forget(name)
        for name, api in present.items():
            before = self._apis.get(name)
            is_new = before is None or before.target != api.target
            if is_new:
                self._checks.hurry(name)
            if api.available and (is_new or before is None or not before.available):
                self._discovery.hurry(name)
                self._openapi.hurry(name)
        if set(self._apis) != set(present):
            self._documents.forget()
        self._apis = present
        self._by_service = {}
        for name, api in present.items():
            self._by_service.setdefault(api.service.key, []).append(name)

    def _note_services(self, model: type[KubeObject], keys: Collection[str] | None) -> None:
        if not self._apis:
            return
        if keys is None:
            services = set(self._by_service)
        elif model is EndpointSlice:
            services = {key for slice_ in keys for key in self._of_slice(slice_)}
        else:
            services = {key for key in keys if key in self._by_service}
        for key in services:
            for name in self._by_service.get(key, ()):
                self._checks.hurry(name)

    def _of_slice(self, key: str) -> Collection[str]:
        entry = self._caches.cache(EndpointSlice.resource).get(key)
        if entry is None:
            return ()
        return (service_of(entry.obj),)

    def _start_due(self, task: ApiTask, now: float) -> None:
        while len(task.running) < WORKERS and (name := task.due.pop(now)) is not None:
            if (api := self._apis.get(name)) is None:
                continue
            task.running.add(name)
            started = asyncio.ensure_future(self._do(task, api))
            self._tasks.add(started)
            started.add_done_callback(self._tasks.discard)

    async def _do(self, task: ApiTask, api: RemoteApi) -> None:
        succeeded = False
        try:
            succeeded = await task.work(api)
        except Exception:  # one bad API costs itself only
            log.exception("Work for an APIService failed", name=api.name)
        finally:
            task.finish(api.name, self._clock.monotonic(), succeeded=succeeded)
            if api.name not in self._apis:
                task.forget(api.name)
            assert self._wake is not None
            self._wake.set()

    # --- the work

    async def _check(self, api: RemoteApi) -> bool:
        service = self._get(Service.resource, api)
        endpoints = self._get(Endpoints.resource, api)
        assert service is None or isinstance(service, Service)
        assert endpoints is None or isinstance(endpoints, Endpoints)
        outcome: Outcome = check_service(api, service, endpoints) or await self._prober.probe(api)
        if not self._says(api, outcome):
            return await self._write(api, outcome) and not outcome.retried
        return not outcome.retried

    def _says(self, api: RemoteApi, outcome: Outcome) -> bool:
        """Reports whether the APIService in the cache has this outcome already."""
        service = self._caches.cache(APIService.resource).find(api.name)
        if service is None:
            return True
        condition = find_condition(service)
        return condition is not None and outcome.equals(condition)

    async def _write(self, api: RemoteApi, outcome: Outcome) -> bool:
        try:
            became_unavailable = await asyncio.to_thread(self._writer.write, api, outcome)
        except errors.KcmError as error:
            log.warning("A condition cannot be written", name=api.name, error=error.message)
            return False
        if became_unavailable:
            self._count_unavailable(api.name, outcome.reason)
        return True

    def _get(self, resource: Resource, api: RemoteApi) -> KubeObject | None:
        entry = self._caches.cache(resource).get(api.service.key)
        return entry.obj if entry is not None else None

    async def _fetch_discovery(self, api: RemoteApi) -> bool:
        return await self._fetch(api, self._documents.fetch_discovery)

    async def _fetch_openapi(self, api: RemoteApi) -> bool:
        return await self._fetch(api, self._documents.fetch_openapi)

    async def _fetch(self, api: RemoteApi, fetch: Callable[[RemoteApi], Awaitable[None]]) -> bool:
        present = self._apis.get(api.name)
        if present is None or not present.available:
            return True  # fetched when it is available again
        try:
            await fetch(api)
        except FetchFailed as error:
            log.warning("A document of another server cannot be used", error=error.message)
            return False
        return True
