"""Sends requests to a Kubernetes API server, and raises kcm's own exceptions.

Thread-safe. Connections are kept open and reused.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import httpx

from kcm import __version__, errors
from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.clock import Clock, RealClock
from kcm.http.blocking import ClientOptions, describe, limit, open_transport
from kcm.store.remote.kubeconfig import ClusterConnection
from kcm.store.remote.rate import RequestRate

JSON = "application/json"
# The form in which lists and watches have nothing but metadata.
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
MOST_PATIENCE = 10.0  # seconds that a request waits in all for a server that asks for it
SHORTEST_WAIT = 0.1  # seconds, if the server says 0
TIMEOUT = 30.0  # seconds for a request; watches wait longer between events
_TIMEOUTS = limit(TIMEOUT).as_dict()
# Probes of an idle watch: the connection to a host that is gone ends after about a minute.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
_ERRORS: Mapping[str, type[errors.ApiError]] = {
    "BadRequest": errors.BadRequest,
    "Forbidden": errors.Forbidden,
    "NotFound": errors.NotFound,
    "AlreadyExists": errors.AlreadyExists,
    "Conflict": errors.Conflict,
    "Expired": errors.Gone,
    "Gone": errors.Gone,
    "RequestEntityTooLarge": errors.RequestTooLarge,
}
# What a response without a Status says, such as one about a group that is not served.
_BY_CODE: Mapping[int, type[errors.ApiError]] = {
    400: errors.BadRequest,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Gone,
    413: errors.RequestTooLarge,
}
_CAUSES: Mapping[str, type[errors.ApiError]] = {
    "NamespaceTerminating": errors.NamespaceTerminating,
    "ResourceVersionTooLarge": errors.Gone,  # the server's data went back
}
_BUSY = frozenset({429, 500, 502, 503, 504})


class ServerBusy(errors.StoreUnavailable):
    """The server responded that it cannot serve the request now. It may serve others."""


class ResponseLines:
    """The lines of a response, which are read while it is received."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._socket = response.extensions["network_stream"].get_extra_info("socket")
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE:
            if hasattr(socket, name):  # not every system has all of them
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def __iter__(self) -> Iterator[bytes]:
        """Yields the lines that are not empty. Raises StoreUnavailable if the last one is cut."""
        begun: list[bytes] = []
        for piece in self._response.iter_bytes():
            if b"\n" not in piece:
                begun.append(piece)
                continue
            *lines, rest = b"".join((*begun, piece)).split(b"\n")
            begun = [rest]
            yield from filter(None, lines)
        if any(begun):
            raise errors.StoreUnavailable("the response ended within a line")

    def cut(self) -> None:
        """Ends the stream from another thread; the thread that reads it closes it.

        Closing it here would free a descriptor that is still being read, and that the next
        connection may get.
        """
        with suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # the socket itself, without TLS


@dataclass
class _Pool:
    """Connections that present one client certificate. `users` is how many requests use them."""

    http: httpx.BaseTransport
    users: int = 0
    retired: bool = False


class RestClient:
    """A client of one API server. `agent` is the field manager, and is in the server's log."""

    def __init__(
        self,
        connection: ClusterConnection,
        agent: str = "kcm",
        headers: Sequence[tuple[str, str]] = (),
        *,
        rate: RequestRate | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`headers` are further headers of each request, and `rate` limits requests."""
        agents = ("user-agent", f"{agent}/{__version__}")
        self._headers = [agents, ("accept-encoding", "gzip"), *headers]
        self._clock = clock or RealClock()
        self._rate = rate or RequestRate(0, 0, self._clock)
        self._closed = threading.Event()
        self._shown = connection.credential.current().certificate
        self._base = connection.server
        self._connection = connection
        self._lock = threading.Lock()
        self._pool = _Pool(self._open())

    def _open(self) -> httpx.BaseTransport:
        # The trust is None only for plain HTTP.
        return open_transport(ClientOptions(TIMEOUT, self._connection.trust, proxies=True))

    def reconnect(self) -> None:
        """Uses new connections from now on, which present the newest client certificate.

        Requests and watches that run go on with theirs until they end.
        """
        fresh = _Pool(self._open())
        with self._lock:
            old, self._pool = self._pool, fresh
            old.retired = True
            idle = not old.users
        if idle:
            old.http.close()

    @contextmanager
    def _use(self) -> Iterator[httpx.BaseTransport]:
        """Yields the transport for a request. A retired one is closed by its last user.

        It is never closed before: that would free a descriptor that is still being read.
        """
        with self._lock:
            pool = self._pool
            pool.users += 1
        try:
            yield pool.http
        finally:
            with self._lock:
                pool.users -= 1
                last = pool.retired and not pool.users
            if last:
                pool.http.close()

    def _identify(self, accept: str) -> list[tuple[str, str]]:
        """Returns the headers that say who asks, and what for.

        A certificate that has changed is presented on new connections.
        """
        identity = self._connection.credential.current()
        if identity.certificate != self._shown:
            self._shown = identity.certificate
            self._connection.use_certificate(identity.certificate)
            self.reconnect()
        bearer = [("authorization", f"Bearer {identity.token}")] if identity.token else []
        return [*self._headers, ("accept", accept), *bearer]

    def close(self) -> None:
        """Closes all connections. Open watches end with an error."""
        self._closed.set()
        self._pool.http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        """Sends a request and returns the body of the response. Raises: ApiError, Temporary.

        When the server says when to try again (429, or 5xx with Retry-After), it is tried again
        then, for up to MOST_PATIENCE seconds. After a 401, it is tried once with credentials that
        were read anew.
        """
        # The server keeps bytes of a ControllerRevision, and its own controllers compare them.
        content = None if body is None else codec.encode_json(body)
        send = partial(self._send, method, path, params=params, content=content)
        patience, read_anew = MOST_PATIENCE, False
        while True:
            self._clock.wait(self._closed, self._rate.reserve())
            response = send(headers=[("content-type", content_type), *self._identify(accept)])
            later = _seconds_to_wait(response)
            if response.status_code == HTTPStatus.UNAUTHORIZED and not read_anew:
                read_anew = True
                self._connection.credential.drop()
            elif later is None or later > patience or self._closed.is_set():
                break
            else:
                patience -= max(later, SHORTEST_WAIT)
                self._clock.wait(self._closed, max(later, SHORTEST_WAIT))
        if response.status_code >= 400:
            raise error_of(response.status_code, response.content)
        return response.content

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None,
        content: bytes | None,
        headers: Sequence[tuple[str, str]],
    ) -> httpx.Response:
        request = httpx.Request(
            method,
            self._base + path,
            params=params,
            content=content,
            headers=headers,
            extensions={"timeout": _TIMEOUTS},
        )
        try:
            with self._use() as http, closing(http.handle_request(request)) as response:
                response.read()
                return response
        except httpx.HTTPError as error:
            raise _unreachable(self._base, error) from error

    @contextmanager
    def lines(
        self, path: str, params: Mapping[str, Any], longest: float, accept: str = JSON
    ) -> Iterator[ResponseLines]:
        """Yields the lines of a streamed response, which the server ends after `longest` seconds.

        Raises: ApiError, Temporary.
        """
        request = httpx.Request(
            "GET",
            self._base + path,
            params=params,
            headers=self._identify(accept),
            extensions={"timeout": limit(TIMEOUT, read=longest + TIMEOUT).as_dict()},
        )
        try:
            with self._use() as http, closing(http.handle_request(request)) as response:
                if response.status_code >= 400:
                    raise error_of(response.status_code, response.read())
                yield ResponseLines(response)
        except (httpx.HTTPError, httpx.StreamError, RuntimeError) as error:
            raise _unreachable(self._base, error) from error


def _seconds_to_wait(response: httpx.Response) -> float | None:
    """Returns after how many seconds the server wants to be asked again, None if it does not."""
    text = response.headers.get("retry-after", "")
    if response.status_code not in _BUSY or not text.isdecimal():
        return None
    return float(text)


def path_of(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Returns the path of a collection, an object or a subresource."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    within = f"/namespaces/{namespace}" if namespace else ""
    return "/".join(
        part for part in (f"{root}{within}/{resource.plural}", name, subresource) if part
    )


def path_of_key(resource: Resource, key: str, subresource: str = "") -> str:
    """Returns the path of the object under a key, or of a subresource of it."""
    namespace, _, name = key.rpartition("/")
    return path_of(resource, namespace, name, subresource)


def error_of(code: int, body: bytes) -> errors.KcmError:
    """Returns the exception for an error response, whose body should be a Status."""
    try:
        status = json.loads(body)
        message, reason = str(status["message"]), str(status.get("reason", ""))
    except (ValueError, KeyError, TypeError):
        message, reason = f"the API server responded with {code}: {body[:200]!r}", ""
        if code in _BY_CODE:
            return _BY_CODE[code](message)
    details = status.get("details") or {} if reason else {}
    causes = [cause.get("reason") for cause in details.get("causes") or ()]
    error = next((_CAUSES[cause] for cause in causes if cause in _CAUSES), _ERRORS.get(reason))
    if error is not None:
        return error(message, name=str(details.get("name", "")))
    # The server cannot decide about this very object, for example since a webhook does not answer.
    if code in _BUSY and reason != "InternalError":
        return ServerBusy(message)
    refused = errors.ApiError(message)
    refused.code, refused.reason = code, reason or "Unknown"
    return refused


def _unreachable(server: str, error: Exception) -> errors.StoreUnavailable:
    why = describe(error, server).message
    return errors.StoreUnavailable(f"the API server {server} does not respond: {why}")
