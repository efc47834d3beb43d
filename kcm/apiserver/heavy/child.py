"""The program of a child process that makes heavy writes for an API server."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from kcm import logs
from kcm.apimachinery.child_process import answer_requests, limit_memory
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.auth.authorizer import AlwaysDeny, AuthorizerDecision, Caller
from kcm.apiserver.heavy.requests import HeavyWrite
from kcm.apiserver.http.responses import Response, with_warnings
from kcm.apiserver.http.sending import present
from kcm.apiserver.http_errors import MethodNotAllowed
from kcm.apiserver.objects import status, verbs
from kcm.apiserver.request_info import parse
from kcm.apiserver.routes import read_api_request
from kcm.coordination.failovers import failover_loops
from kcm.interpreter import tune
from kcm.loops import ThreadHost
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store

MOST_SECONDS = 30.0  # of CPU for one write
_MOST_MEMORY = 1024**3  # bytes beyond those at the start
_NICE = 10  # on a busy machine the event loop of the server comes first
_IDLE = 300.0  # seconds without a write after which the process ends


class _Decided(AlwaysDeny):
    """The authorizer of a write: its one question has been answered before."""

    def __init__(self, creates: AuthorizerDecision) -> None:
        self._creates = creates

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        return self._creates


def _prepare(settings: Settings) -> Callable[[HeavyWrite], Response]:
    tune()
    logs.configure(settings.log_format, settings.log_level)
    io = RedisIO(settings, name="kcm-apiserver-heavy")
    io.attach()
    ThreadHost().run(*failover_loops(io))
    store = Store(io)
    limit_memory(_MOST_MEMORY)
    return lambda write: _answer(store, write)


def _answer(store: Store, write: HeavyWrite) -> Response:
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # SIGPROF kills the process
    try:
        return present(_respond(store, write), write.request)
    except MemoryError:
        sys.exit(1)  # a new process starts with all of it
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _respond(store: Store, write: HeavyWrite) -> Response:
    try:
        return _write(store, write)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - no trace may leave the server
        return status.respond_failure(error)


def _write(store: Store, write: HeavyWrite) -> Response:
    request = write.request
    caller = Caller(write.user, _Decided(write.creates))
    api_request = read_api_request(request, parse(request.path, store.scheme), caller)
    match request.method:
        case "POST":
            response = verbs.create(store, api_request)
        case "PUT":
            response = verbs.update(store, api_request)
        case "PATCH":
            response = verbs.patch(store, api_request)
        case _:
            raise MethodNotAllowed
    return with_warnings(response, api_request.remarks.warnings)


def main() -> None:
    """Runs the child process until its input ends, or no write came for minutes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process stops this one
    os.nice(_NICE)
    answer_requests(_prepare, _IDLE)


if __name__ == "__main__":
    main()
