"""The node's HTTP API: authenticates requests and responds to them.

Guarantees: without the token a client learns only whether the node is healthy. Nothing here blocks
the event loop. A client that disconnects stops its exec and its forwarded connections, but never a
container. Streams wait in threads of their own and their number is limited (`stream_limits`), so
that they delay neither each other nor the node's own pages.

Source: pkg/kubelet/server/server.go, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.api import codec
from kcm.clock import Clock
from kcm.http.listening import bears
from kcm.kubelet.cri import PortConnection, Stream, StreamOptions
from kcm.kubelet.server import portforward, websocket
from kcm.kubelet.server.channels import ChannelSession, parse_stream_options
from kcm.kubelet.server.connection import is_trusted
from kcm.kubelet.server.logs import LogOptions, LogReader
from kcm.kubelet.server.pods import NodePods
from kcm.kubelet.server.stream_limits import ForwardLimits, StreamLimits
from kcm.kubelet.server.upgrading import accept_channels, accept_tunnel, has_port_channels

log = structlog.get_logger("kcm.kubelet")

T = TypeVar("T")
PAGE_THREADS = 4  # for /pods, /metrics and /stats
LOG_THREADS = 16  # they read pieces of logs, and never wait for a client
STREAM_THREADS = 3  # of one exec, attach or port-forward: to start it, to wait, to close stdin
_FOLLOW_INTERVAL = 0.2  # seconds between two reads of a followed log
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class ServerSources:
    """What the server reads its responses from. All functions except `check_health` may block."""

    pods: NodePods
    check_health: Callable[[], str]  # returns what is wrong, "" if nothing is
    metrics: Callable[[], bytes] = bytes
    resource_metrics: Callable[[], bytes] = bytes
    stats_summary: Callable[[], dict[str, Any]] = dict


class KubeletServer:
    """The ASGI app. To stop it, call `stop_streams` in the event loop, and then `close`."""

    def __init__(self, sources: ServerSources, token: Callable[[], str], clock: Clock) -> None:
        """`token` returns the bearer token of clients without a trusted certificate. While it is
        "", they have no access.
        """
        self._sources = sources
        self._token = token
        self._clock = clock
        self._pages = ThreadPoolExecutor(PAGE_THREADS, thread_name_prefix="kcm-node-pages")
        self._pool = ThreadPoolExecutor(LOG_THREADS, thread_name_prefix="kcm-node-logs")
        self._limits = StreamLimits()
        self._forwarded = ForwardLimits()
        self._stopped = False
        self._streams: set[asyncio.Task[Any]] = set()
        pod = "/{namespace}/{pod}"
        methods = ["GET", "POST"]
        self._router = Router(
            [
                Route("/healthz", self._healthz),
                Route("/pods", self._pods),
                Route("/pods/", self._pods),
                Route("/metrics", self._metrics),
                Route("/metrics/resource", self._resource_metrics),
                Route("/stats/summary", self._summary),
                Route(f"/containerLogs{pod}/{{container}}", self._logs),
                Route(f"/exec{pod}/{{container}}", _UpgradingEndpoint(self._exec), methods=methods),
                Route(
                    f"/attach{pod}/{{container}}", _UpgradingEndpoint(self._attach), methods=methods
                ),
                Route(f"/portForward{pod}", _UpgradingEndpoint(self._forward), methods=methods),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        given = websocket.header(scope, b"authorization")
        try:
            has_access = is_trusted(scope) or bears(given, self._token())
            if scope["path"] != "/healthz" and not has_access:
                headers = {"WWW-Authenticate": "Bearer"}
                response: Response = PlainTextResponse("Unauthorized", 401, headers)
                await response(scope, receive, send)
            else:
                await self._track(self._router(scope, receive, send))
        except errors.ApiError as error:
            await PlainTextResponse(error.message + "\n", error.code)(scope, receive, send)
        except errors.KcmError as error:
            await PlainTextResponse(error.message + "\n", 500)(scope, receive, send)

    async def _track(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._streams.add(task)
        try:
            await task
        except asyncio.CancelledError:
            if not self._stopped:
                raise  # the caller cancelled it, and waits for that
        finally:
            self._streams.discard(task)
            task.cancel()

    @property
    def under_way(self) -> int:
        """The number of requests that are being handled."""
        return len(self._streams)

    def stop_streams(self) -> None:
        """Aborts all requests that are being handled. Must be called in the event loop."""
        self._stopped = True
        for task in list(self._streams):
            task.cancel()

    def close(self) -> None:
        """Stops the threads."""
        for pool in (self._pages, self._pool):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _in_log_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _in_page_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pages, work)

    # --- pages

    async def _healthz(self, request: Request) -> Response:
        problem = self._sources.check_health()
        return PlainTextResponse(f"{problem}\n" if problem else "ok", 500 if problem else 200)

    async def _pods(self, request: Request) -> Response:
        def list_pods() -> bytes:
            items = [codec.to_dict(pod) for pod in self._sources.pods.all()]
            body = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
            return json.dumps(body).encode()

        return Response(await self._in_page_thread(list_pods), media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        page = await self._in_page_thread(self._sources.metrics)
        return Response(page, media_type=_METRICS_TYPE)

    async def _resource_metrics(self, request: Request) -> Response:
        page = await self._in_page_thread(self._sources.resource_metrics)
        return Response(page, media_type=_METRICS_TYPE)

    async def _summary(self, request: Request) -> Response:
        return JSONResponse(await self._in_page_thread(self._sources.stats_summary))

    # --- logs

    async def _logs(self, request: Request) -> Response:
        options = LogOptions.of(request.query_params, self._clock.now())
        namespace, name, container = _parse_path(request)

        def open_log() -> tuple[str, LogReader]:
            pods = self._sources.pods
            pod = pods.get(namespace, name)
            container_id = pods.find_logged(pod, container, previous=options.previous)
            try:
                return container_id, LogReader(pods.log_path(container_id), options)
            except errors.ContainerNotFound:
                text = f'container "{container}" in pod "{name}" is gone, with its log'
                raise errors.BadRequest(text) from None

        held = ExitStack()
        if options.follow:
            held.enter_context(self._limits.acquire(namespace, name))
        with ExitStack() as undone:
            undone.enter_context(held)
            container_id, reader = await self._in_log_thread(open_log)
            undone.pop_all()
        lines = self._lines(container_id, reader, options, held)
        return StreamingResponse(lines, media_type="text/plain")

    async def _lines(
        self, container: str, reader: LogReader, options: LogOptions, held: ExitStack
    ) -> AsyncIterator[bytes]:
        """Yields the lines of the log.

        A followed log goes on until the container has exited and all of its log was read.
        """
        try:
            while not reader.full:
                runs = options.follow and await self._in_log_thread(
                    lambda: self._sources.pods.runs(container)
                )
                while (data := await self._in_log_thread(reader.read)) or reader.behind:
                    yield data
                if not runs:
                    return
                await asyncio.sleep(_FOLLOW_INTERVAL)
        finally:
            reader.close()
            held.close()

    # --- streams

    async def _exec(self, request: Request) -> None:
        command = request.query_params.getlist("command")
        if not command:
            raise errors.BadRequest("you must specify at least 1 command")
        runtime = self._sources.pods.runtime

        def execute(container: str, wanted: StreamOptions) -> Stream:
            return runtime.exec(container, command, wanted)

        await self._channels(request, execute, is_exec=True)

    async def _attach(self, request: Request) -> None:
        await self._channels(request, self._sources.pods.runtime.attach, is_exec=False)

    async def _channels(
        self, request: Request, open_: Callable[[str, StreamOptions], Stream], *, is_exec: bool
    ) -> None:
        wanted = parse_stream_options(request.query_params)
        namespace, name, container = _parse_path(request)
        pods = self._sources.pods

        def find_container() -> str:
            return pods.find_running(pods.get(namespace, name), container)

        with self._limits.acquire(namespace, name), _threads() as pool:
            container_id = await self._in_log_thread(find_container)
            socket = await accept_channels(request.scope, wanted)
            if socket is None:
                return
            session = ChannelSession(socket, wanted, pool)
            await session.run(lambda: open_(container_id, wanted), is_exec=is_exec)

    async def _forward(self, request: Request) -> None:
        namespace, name = request.path_params["namespace"], request.path_params["pod"]
        pods = self._sources.pods
        with self._limits.acquire(namespace, name), _threads() as pool:
            sandbox = await self._in_log_thread(
                lambda: pods.find_sandbox(pods.get(namespace, name))
            )
            runtime = pods.runtime

            def connect(port: int) -> PortConnection:
                return runtime.port_forward(sandbox, port)

            def admit() -> AbstractContextManager[None]:
                return self._forwarded.acquire(namespace, name)

            if has_port_channels(request.scope):
                ports = portforward.parse_ports(request.query_params.getlist("port"))
                socket = accept_tunnel(request.scope)
                await portforward.PortChannels(socket, ports, connect, pool, admit=admit).run()
                return
            socket = accept_tunnel(request.scope)
            await portforward.PortForwarding(socket, connect, pool, admit=admit).run()


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Yields a thread pool for one stream, and shuts it down afterwards."""
    pool = ThreadPoolExecutor(STREAM_THREADS, thread_name_prefix="kcm-node-stream")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _UpgradingEndpoint:
    """Turns an endpoint that takes over its connection into an ASGI app."""

    def __init__(self, endpoint: Callable[[Request], Awaitable[None]]) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint(Request(scope, receive))


def _parse_path(request: Request) -> tuple[str, str, str]:
    path = request.path_params
    return path["namespace"], path["pod"], path["container"]
