"""Where requests run: in the event loop, in threads, or in child processes, by the work they are.

Threads that compute take turns with the event loop, which makes all other requests slower. So what
computes for long runs in few threads, and what computes for very long in child processes, where
that is possible. How long it takes often shows only while it runs: then it raises
`greenlets.TooLong`, if it has written nothing, and starts again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from kcm import errors
from kcm.api.custom.kinds import CustomResource
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.computed_kinds import is_computed
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.flowcontrol.turns import Turns
from kcm.apiserver.heavy.processes import HeavyProcesses
from kcm.apiserver.heavy.requests import HeavyWrite, find_heavy_write
from kcm.apiserver.http.bodies import protobuf
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.stalls import StallMeter
from kcm.apiserver.http.threads import Threads
from kcm.apiserver.objects import status
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import RequestInfo
from kcm.redisio import greenlets
from kcm.store.admission.chain import AdmissionChain

HEAVY_THREADS = 2  # for requests that compute for long; one user gets one of them
_MEDIUM = 8  # times as long as in the event loop; what is longer is for a child process
Handler = Callable[[], Response]
_SMALL_BODY = 16 * 1024  # bytes
_MOST_TEXT = 1024 * 1024  # bytes of a body of few values outside the event loop: 20 ms
_SMALL_PROTOBUF = 4 * 1024  # bytes; a value has two or more
_SHORT = ("", "status", "token")  # a token takes one or two reads and a signature


@dataclass(frozen=True)
class HeavyWriters:
    """The child processes that make heavy writes, and what tells which writes they can make."""

    processes: HeavyProcesses
    authorizer: Authorizer
    admission: AdmissionChain

    def find(self, exchange: Exchange) -> HeavyWrite | None:
        """Returns the write that a child process can make for a request, None if it cannot."""
        if exchange.info is None:
            return None
        try:
            caller = exchange.caller(self.authorizer)
            return find_heavy_write(exchange.request, exchange.info, caller, self.admission)
        except errors.KcmError:
            return None  # the handler comes to the same error


class RequestLanes:
    """Runs the handler of requests. All methods are for the event loop's thread."""

    def __init__(
        self,
        threads: Threads,
        stalls: StallMeter,
        handle: Callable[[Exchange], Response],
        turns: Turns,
        writers: HeavyWriters | None = None,
    ) -> None:
        """`handle` returns the response to a request, also for an error. Without `writers`, heavy
        writes are made in threads.
        """
        self._threads = threads
        self._heavy = Threads(HEAVY_THREADS, "kcm-api-heavy")
        self._stalls = stalls
        self._handle = handle
        self._turns = turns
        self._writers = writers

    def start(self) -> None:
        """Starts the threads for what computes for long."""
        self._heavy.start()

    def stop(self) -> None:
        """Ends the child processes, and waits for the threads."""
        if self._writers is not None:
            self._writers.processes.close()
        self._heavy.stop()

    async def run(self, exchange: Exchange) -> Response:
        """Returns the response to a request that has passed all filters."""
        handle, user = partial(self._handle, exchange), exchange.payer
        with suppress(greenlets.TooLong):
            if exchange.info is not None and is_short(exchange.request, exchange.info):
                return await self._run_in_loop(handle, exchange, user)
            if is_small(exchange.request):
                return await self._threads.run(partial(greenlets.run_lightly, handle), user)
        return await self._heavy.run(partial(self._run_heavy, handle, exchange), user)

    async def _run_in_loop(self, handle: Handler, exchange: Exchange, user: User) -> Response:
        named = f"{exchange.request.method} {exchange.request.path}"
        assert exchange.flow is not None  # its filter is passed
        turn = await self._turns.take(exchange.flow)

        def took(seconds: float) -> None:
            turn.seconds += seconds
            self._stalls.note_step(named, seconds)

        try:
            return await greenlets.run(
                handle,
                lambda work: turn.leave_for(self._threads.run(work, user)),
                took,
                turn.leave_for,
            )
        finally:
            self._turns.end(turn)

    def _run_heavy(self, handle: Handler, exchange: Exchange) -> Response:
        write = self._writers.find(exchange) if self._writers is not None else None
        if self._writers is None or write is None:
            return handle()
        if is_small(exchange.request, _MEDIUM):
            with suppress(greenlets.TooLong):
                return greenlets.run_lightly(handle, _MEDIUM)
        try:
            return self._writers.processes.write(write)
        except errors.KcmError as error:
            return status.respond_failure(error, exchange.remarks.warnings)


def is_short(request: Request, info: RequestInfo) -> bool:
    """Reports whether a request takes about a millisecond at most, without the waits for Redis.

    These are reads and writes of one object of a built-in kind with a small body of few values.
    Schemas and rules of definitions and custom kinds may take long, and so may YAML, which can
    expand. What shows only later, as the size of the stored object and what a patch does, raises
    `greenlets.TooLong` where it shows.
    """
    resource = info.resource
    return (
        (bool(info.name) or request.method == "POST")
        and info.subresource in _SHORT
        and not isinstance(resource, CustomResource)
        and resource.group != "apiextensions.k8s.io"
        and not is_computed(resource)
        and "yaml" not in request.content_type
        and is_small(request)
    )


def is_small(request: Request, times: int = 1) -> bool:
    """Reports whether the body of a request takes about a millisecond to handle, or so many `times`
    that, at most.
    """
    body = request.body
    if request.content_type == protobuf.CONTENT_TYPE:
        return len(body) <= _SMALL_PROTOBUF * times
    if len(body) > (_SMALL_BODY if times == 1 else _MOST_TEXT):
        return False
    return body.count(b",") <= greenlets.MOST_VALUES * times
